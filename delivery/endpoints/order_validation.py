"""Makes an order of what was asked: the checks that a schema can not state, and the merging of recipients.

Before: `delivery.http.decoding`. After: `core.history.deliveries`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct, UnsetType

from core.model.delivery import NewDelivery, Recipient, Sender
from core.model.history_key import HistoryKey, Id
from delivery.http.options import Options
from delivery.http.problems import Fault, Faulty, fault
from delivery.http.timestamps import read_time
from delivery.http.validation import MOST
from delivery.schemas import requests as schemas

Given = schemas.Delivery
Faults = list[Fault]


class Terms(Struct, frozen=True):
    """What an order is checked against."""

    tenant: str
    channels: Sequence[str]  # those that are known
    options: Options


def make_order(given: Given, terms: Terms) -> NewDelivery:
    """The order. Raises `Faulty` with all that is wrong."""
    sender, furthest = given.sender, terms.options.furthest
    order = NewDelivery(
        tenant=terms.tenant,
        sender=Sender(sender.id, sender.name or None, sender.role or None),
        text=given.text,
        recipients=_recipients(given.recipients),
        channels=given.channels or terms.channels,
        origin=given.origin or "api",
        deliver_at=read_time(given.deliver_at, "deliver_at", furthest) if given.deliver_at else None,
        expires_at=read_time(given.expires_at, "expires_at", furthest) if given.expires_at else None,
        history_key=HistoryKey.parse(given.history_key) if given.history_key else None,
        lane=given.lane or None,
        priority=5 if isinstance(given.priority, UnsetType) else given.priority,
        kind=given.kind or "message",
        tags=tuple(dict.fromkeys(given.tags)) if given.tags else (),
    )
    faults: Faults = []
    if not _is_sound(order, terms):
        _check_size(order, terms, faults)
        _check_names(order, faults)
        _check_people(given.recipients, terms, faults)
    _check_choices(order, given, terms, faults)
    if faults:
        raise Faulty(faults[:MOST])
    return order


# recipients


def _recipients(given: Sequence[schemas.Recipient]) -> Sequence[Recipient]:
    """Everybody once: who is named twice keeps the contacts of both. Ids that look alike (7 and "7") are one person."""
    if len(given) == 1:
        return (_recipient(given[0], 0),)
    merged: dict[str, Recipient] = {}
    for number, told in enumerate(given):
        one = _recipient(told, number)
        known = merged.setdefault(str(one.id), one)
        if known is not one:
            merged[str(one.id)] = _united(known, one)
    return list(merged.values())


def _recipient(given: schemas.Recipient, number: int) -> Recipient:
    if isinstance(given.id, UnsetType) or given.group or given.supergroup:
        raise _not_a_person(given, f"recipients.{number}")
    contacts = {}
    for channel, told in (given.contacts or {}).items():
        if told:
            contacts[channel] = (told,) if isinstance(told, str) else tuple(dict.fromkeys(told))
    return Recipient(given.id, given.name or None, contacts)


def _not_a_person(given: schemas.Recipient, path: str) -> Faulty:
    named = [name for name in ("id", "group", "supergroup") if not isinstance(getattr(given, name), UnsetType)]
    if len(named) > 1:
        return fault(path, "RECIPIENT_AMBIGUOUS", f"One of {' and '.join(named)} is wanted, not both.")
    if not named:
        return fault(f"{path}.id", "RECIPIENT_WITHOUT_ID", "A recipient needs an id.")
    name = getattr(given, named[0])
    return fault(f"{path}.{named[0]}", f"{named[0].upper()}_NOT_FOUND", f"There is no {named[0]} {name!r}.")


def _united(one: Recipient, other: Recipient) -> Recipient:
    channels = dict.fromkeys([*one.contacts, *other.contacts])
    contacts = {name: _both(one.contacts.get(name, ()), other.contacts.get(name, ())) for name in channels}
    return Recipient(one.id, one.name or other.name, contacts)


def _both(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*one, *other]))


# rules


def _is_sound(order: NewDelivery, terms: Terms) -> bool:
    """Whether it keeps the rules of size, names and people, as most orders do; only if not, the faults are looked for.
    Merging loses no contact, so whatever is wrong with somebody shows in the order.
    """
    names = "".join((str(order.sender.id), order.kind, order.origin, order.lane or "", *order.tags))
    if not names.isprintable() or order.text.isspace() or len(order.recipients) > terms.options.most_recipients:
        return False
    channels = terms.channels
    for person in order.recipients:
        if isinstance(person.id, str) and not person.id.isprintable():
            return False
        for channel, addresses in person.contacts.items():
            if channel not in channels or not "".join(addresses).isprintable():
                return False
    return True


def _check_size(order: NewDelivery, terms: Terms, faults: Faults) -> None:
    if order.text.isspace():
        faults.append(Fault("text", "TEXT_EMPTY", "The text is only white space."))
    most = terms.options.most_recipients
    if len(order.recipients) > most:
        faults.append(Fault("recipients", "TOO_MANY_RECIPIENTS", f"At most {most} recipients are allowed."))


def _check_names(order: NewDelivery, faults: Faults) -> None:
    """Ids and names of things become parts of keys and logs: no control characters, no line breaks."""
    _printable("sender.id", order.sender.id, faults)
    _printable("kind", order.kind, faults)
    _printable("origin", order.origin, faults)
    _printable("lane", order.lane or "", faults)
    for number, tag in enumerate(order.tags):
        _printable(f"tags.{number}", tag, faults)


def _printable(path: str, value: Id, faults: Faults) -> None:
    if isinstance(value, str) and not value.isprintable():
        faults.append(Fault(path, "NOT_PRINTABLE", "Only printable characters are allowed."))


def _check_people(told: Sequence[schemas.Recipient], terms: Terms, faults: Faults) -> None:
    """Paths are as it was sent."""
    for number, one in enumerate(told):
        _printable(f"recipients.{number}.id", one.id or 0, faults)
        for channel, addresses in (one.contacts or {}).items():
            path = f"recipients.{number}.contacts.{channel}"
            _known(path, channel, terms, faults)
            _printable(path, "".join(addresses), faults)


def _check_choices(order: NewDelivery, given: Given, terms: Terms, faults: Faults) -> None:
    """What few orders have, each looked at where it was given."""
    if given.channels:
        _check_channels(given.channels, terms, faults)
    if given.strategy or given.wait:
        _check_strategy(given, faults)
    if order.expires_at:
        _check_expiry(order.expires_at, order.deliver_at, faults)
    if order.history_key:
        _check_own_key(order.history_key, order.sender, faults)


def _check_channels(channels: Sequence[str], terms: Terms, faults: Faults) -> None:
    for number, channel in enumerate(channels):
        _known(f"channels.{number}", channel, terms, faults)


def _known(path: str, channel: str, terms: Terms, faults: Faults) -> None:
    if channel not in terms.channels:
        faults.append(Fault(path, "UNKNOWN_CHANNEL", f"There is no channel {channel!r}."))


def _check_strategy(given: Given, faults: Faults) -> None:
    if given.strategy == "first":
        faults.append(Fault("strategy", "STRATEGY_NOT_AVAILABLE", "Only the strategy all is available."))
    elif given.wait:
        faults.append(Fault("wait", "WAIT_WITHOUT_FIRST", "A wait belongs to the strategy first."))


def _check_expiry(expires_at: datetime, deliver_at: datetime | None, faults: Faults) -> None:
    now = datetime.now(UTC)
    if expires_at <= max(deliver_at or now, now):
        faults.append(Fault("expires_at", "EXPIRES_BEFORE_DUE", "It would expire before it is due."))


def _check_own_key(key: HistoryKey, sender: Sender, faults: Faults) -> None:
    if key.sender != str(sender.id):
        told = f"The key was made for the sender {key.sender!r}."
        faults.append(Fault("history_key", "HISTORY_KEY_OF_ANOTHER_SENDER", told))
