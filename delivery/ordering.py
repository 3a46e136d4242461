"""Makes an order of what was asked: the checks that a schema can not state, and the merging of recipients.

Before: `delivery.reading`. After: `core.histories`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec import UnsetType

from core.errors import Invalid
from core.orders import HistoryKey, Order, Recipient, Sender
from delivery import schemas
from delivery.options import Options
from delivery.problems import Fault, Faulty, fault
from delivery.times import read_time

Given = schemas.Delivery


@dataclass(frozen=True, slots=True)
class Terms:
    """What an order is checked against."""

    tenant: str
    channels: Sequence[str]  # those that are known
    options: Options
    shards: int


def make_order(given: Given, terms: Terms) -> Order:
    """The order. Raises `Faulty` with all that is wrong."""
    order = Order(
        tenant=terms.tenant,
        sender=_sender(given.sender),
        text=given.text,
        recipients=_recipients(given.recipients),
        channels=given.channels or terms.channels,
        origin=given.origin or "api",
        deliver_at=_time(given.deliver_at, "deliver_at", terms),
        expires_at=_time(given.expires_at, "expires_at", terms),
        history_key=_history_key(given, terms),
        lane=given.lane or None,
        priority=5 if isinstance(given.priority, UnsetType) else given.priority,
        kind=given.kind or "message",
        tags=tuple(dict.fromkeys(given.tags or ())),
    )
    if faults := [found for rule in RULES for found in rule(given, order, terms)]:
        raise Faulty(faults[:20])
    return order


def _sender(given: schemas.Sender) -> Sender:
    return Sender(given.id, given.name or None, given.role or None)


def _time(text: str | UnsetType | None, path: str, terms: Terms) -> datetime | None:
    return read_time(text, path, terms.options.furthest) if text else None


def _history_key(given: Given, terms: Terms) -> HistoryKey | None:
    if not given.history_key:
        return None
    key = HistoryKey.parse(given.history_key)
    if key.shard >= terms.shards:
        raise Invalid("HISTORY_KEY_MALFORMED", "There is no such shard.", "history_key")
    return key


# recipients


def _recipients(given: Sequence[schemas.Recipient]) -> Sequence[Recipient]:
    """Everybody once: who is named twice keeps the contacts of both. Ids that look alike (7 and "7") are one person."""
    people = [_recipient(one, number) for number, one in enumerate(given)]
    if len(people) == 1:
        return people
    merged: dict[str, Recipient] = {}
    for one in people:
        known = merged.setdefault(str(one.id), one)
        if known is not one:
            merged[str(one.id)] = _united(known, one)
    return list(merged.values())


def _recipient(given: schemas.Recipient, number: int) -> Recipient:
    if isinstance(given.id, UnsetType) or given.group or given.supergroup:
        raise _not_a_person(given, f"recipients.{number}")
    contacts = {channel: _addresses(told) for channel, told in given.contacts.items() if told} if given.contacts else {}
    return Recipient(given.id, given.name or None, contacts)


def _addresses(told: str | list[str]) -> tuple[str, ...]:
    return (told,) if isinstance(told, str) else tuple(dict.fromkeys(told))


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


def _text(given: Given, order: Order, terms: Terms) -> Iterator[Fault]:
    if not order.text.strip():
        yield Fault("text", "TEXT_EMPTY", "The text is only white space.")


def _how_many(given: Given, order: Order, terms: Terms) -> Iterator[Fault]:
    most = terms.options.most_recipients
    if len(order.recipients) > most:
        yield Fault("recipients", "TOO_MANY_RECIPIENTS", f"At most {most} recipients are allowed.")


def _printable(given: Given, order: Order, terms: Terms) -> Iterator[Fault]:
    """Ids and names of things become parts of keys and logs: no control characters, no line breaks."""
    names = {"sender.id": order.sender.id, "lane": order.lane, "kind": order.kind, "origin": order.origin}
    for path, value in names.items():
        if isinstance(value, str) and not value.isprintable():
            yield _unprintable(path)
    for number, tag in enumerate(order.tags):
        if not tag.isprintable():
            yield _unprintable(f"tags.{number}")


def _unprintable(path: str) -> Fault:
    return Fault(path, "NOT_PRINTABLE", "Only printable characters are allowed.")


def _people(given: Given, order: Order, terms: Terms) -> Iterator[Fault]:
    for number, one in enumerate(given.recipients):
        if isinstance(one.id, str) and not one.id.isprintable():
            yield _unprintable(f"recipients.{number}.id")
        if one.contacts:
            yield from _contacts(one.contacts, f"recipients.{number}.contacts", terms)


def _contacts(contacts: dict[str, str | list[str]], path: str, terms: Terms) -> Iterator[Fault]:
    for channel, told in contacts.items():
        if channel not in terms.channels:
            yield _unknown(f"{path}.{channel}", channel)
        if not "".join(_addresses(told)).isprintable():
            yield _unprintable(f"{path}.{channel}")


def _channels(given: Given, order: Order, terms: Terms) -> Iterator[Fault]:
    for number, channel in enumerate(given.channels or ()):
        if channel not in terms.channels:
            yield _unknown(f"channels.{number}", channel)


def _unknown(path: str, channel: str) -> Fault:
    return Fault(path, "UNKNOWN_CHANNEL", f"There is no channel {channel!r}.")


def _strategy(given: Given, order: Order, terms: Terms) -> Iterator[Fault]:
    if given.strategy == "first":
        yield Fault("strategy", "STRATEGY_NOT_AVAILABLE", "Only the strategy all is available.")
    elif given.wait:
        yield Fault("wait", "WAIT_WITHOUT_FIRST", "A wait belongs to the strategy first.")


def _expiry(given: Given, order: Order, terms: Terms) -> Iterator[Fault]:
    if order.expires_at is None:
        return
    now = datetime.now(UTC)
    if order.expires_at <= max(order.deliver_at or now, now):
        yield Fault("expires_at", "EXPIRES_BEFORE_DUE", "It would expire before it is due.")


def _own_key(given: Given, order: Order, terms: Terms) -> Iterator[Fault]:
    key = order.history_key
    if key is not None and key.sender != str(order.sender.id):
        yield Fault("history_key", "HISTORY_KEY_OF_ANOTHER_SENDER", f"The key was made for the sender {key.sender!r}.")


Rule = Callable[[Given, Order, Terms], Iterator[Fault]]
RULES: tuple[Rule, ...] = (_text, _how_many, _printable, _people, _channels, _strategy, _expiry, _own_key)
