"""Every rule of an order that needs no store, in one place for all who order: the API, bulk, previews, bots, scenarios,
jobs. Pure.

Each fault is an `Invalid` with a stable code and the path of the field, as the API names it. The rules that need the
store (people, groups, quiet hours, files) are in `core.orders.preparation`, which calls this first.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice

from msgspec import UnsetType
from msgspec.structs import replace

from core.errors import Invalid, InvalidMany
from core.model.delivery import Audience, NewDelivery, Recipient, Strategy
from core.model.history_key import Id
from core.model.people import faults_of_address, unknown_channel
from core.model.text.characters import refusal
from core.model.text.personal import field_name
from core.orders.content_rules import faults_of_content
from core.orders.delivery_times import faults_of_time
from core.orders.order import Addressee, Order
from core.orders.personal_values import neutral
from core.orders.question_rules import faults_of_escalation, faults_of_need

MOST_FAULTS = 20
"""Faults reported at once."""
_NAMING = ("id", "group", "supergroup", "table", "follow_up")
_SHORTEST_WAIT, _LONGEST_WAIT = timedelta(seconds=1), timedelta(days=30)


def check(order: Order, channels: Sequence[str], now: datetime) -> list[Invalid]:
    """Return the first faults of an order, none if it may be prepared. `channels`: the known ones."""
    return list(islice(_faults(order, {*channels, *_answered(order)}, now), MOST_FAULTS))


def refuse(faults: Sequence[Invalid]) -> None:
    """Refuse an order that has faults. Raises Invalid, InvalidMany for several."""
    if len(faults) > 1:
        raise InvalidMany(faults[0].detail, faults)
    for fault in faults:
        raise fault


def _answered(order: Order) -> Iterator[str]:
    """Emit the channels of recipients that Ada has made of an event: it came from there, so the channel is known before
    its courier starts.
    """
    for one in order.addressees:
        if isinstance(one, Recipient):
            yield from one.contacts


def _faults(order: Order, channels: Collection[str], now: datetime) -> Iterator[Invalid]:
    delivery = order.delivery
    yield from _faults_of_names(delivery)
    for number, one in enumerate(order.addressees):
        if isinstance(one, Addressee):
            yield from _faults_of_addressee(one, f"recipients.{number}", channels)
    if any(isinstance(one, Addressee) and one.follow_up for one in order.addressees):
        yield from _faults_of_follow_up(order)
    if order.personal is False and order.has_values:
        yield Invalid("VALUES_NOT_PERSONAL", "Values belong to a personal text.", "personal")
    for number, channel in enumerate(delivery.channels):
        yield from _faults_of_channel(channel, f"channels.{number}", channels)
    yield from faults_of_escalation(delivery.question, delivery.channels, channels)
    yield from faults_of_need(delivery.question, delivery.strategy)
    yield from _faults_of_wait(delivery)
    yield from faults_of_time(delivery.deliver_at, now, is_far=order.far)
    yield from _faults_of_expiry(delivery, now)
    if delivery.history_key and delivery.history_key.sender != str(delivery.sender.id):
        detail = f"The key was made for the sender {delivery.history_key.sender!r}."
        yield Invalid("HISTORY_KEY_OF_ANOTHER_SENDER", detail, "history_key")
    for of_language in (delivery, *(replace(delivery, text=text, texts={}) for text in delivery.texts.values())):
        yield from faults_of_content(neutral(of_language) if order.is_personal else of_language)


def _faults_of_follow_up(order: Order) -> Iterator[Invalid]:
    if len(order.addressees) > 1:
        yield Invalid("FOLLOW_UP_ALONE", "A follow-up goes to no further recipients.", "recipients")
    if order.audience is not Audience.STUDENTS:
        yield Invalid("FOLLOW_UP_ALONE", "A follow-up goes to recipients of its delivery, whoever they are.", "to")


def _faults_of_names(delivery: NewDelivery) -> Iterator[Invalid]:
    """Emit ids and names that would be no part of a key or a log: no control characters, no line breaks."""
    names: Mapping[str, Id | None] = {
        "sender.id": delivery.sender.id,
        "kind": delivery.kind,
        "origin": delivery.origin,
        "lane": delivery.lane,
        **{f"tags.{number}": tag for number, tag in enumerate(delivery.tags)},
    }
    for path, name in names.items():
        yield from _faults_of_name(path, name)


def _faults_of_name(path: str, name: Id | UnsetType | None) -> Iterator[Invalid]:
    if isinstance(name, str) and (refused := refusal(name)):
        yield Invalid("NOT_PRINTABLE", refused, path)


# recipients


def _faults_of_addressee(given: Addressee, path: str, channels: Collection[str]) -> Iterator[Invalid]:
    yield from _faults_of_form(given, path)
    for name in ("id", "group", "supergroup"):
        yield from _faults_of_name(f"{path}.{name}", getattr(given, name))
    for channel, addresses in (given.contacts or {}).items():
        place = f"{path}.contacts.{channel}"
        yield from _faults_of_channel(channel, place, channels)
        listed = [(place, addresses)] if isinstance(addresses, str) else _numbered(place, addresses)
        for of_one, address in listed:
            yield from faults_of_address(channel, address, of_one)
    yield from _faults_of_values(given.values or {}, f"{path}.values")


def _numbered(path: str, values: Sequence[str]) -> list[tuple[str, str]]:
    return [(f"{path}.{number}", value) for number, value in enumerate(values)]


def _faults_of_form(given: Addressee, path: str) -> Iterator[Invalid]:
    """Emit what keeps it from being one person, one group, one supergroup, one table or one follow-up."""
    named = [name for name in _NAMING if not isinstance(getattr(given, name), UnsetType)]
    personal = [
        name for name in ("name", "contacts", "values", "locale") if not isinstance(getattr(given, name), UnsetType)
    ]
    if (given.sheet or given.encoding) and not given.table:
        yield Invalid("RECIPIENT_AMBIGUOUS", "A sheet and an encoding belong to a table.", path)
    elif given.of and not given.follow_up:
        yield Invalid("RECIPIENT_AMBIGUOUS", "The field of belongs to a follow-up.", f"{path}.of")
    elif not named:
        yield Invalid("RECIPIENT_WITHOUT_ID", "A recipient needs an id.", f"{path}.id")
    elif len(named) > 1:
        yield Invalid("RECIPIENT_AMBIGUOUS", f"Only one of {' and '.join(named)} is allowed.", path)
    elif personal and named != ["id"]:
        detail = f"A {named[0].replace('_', '-')} has no {' and '.join(personal)}; these belong to a person."
        yield Invalid("RECIPIENT_AMBIGUOUS", detail, path)


def _faults_of_channel(channel: str, path: str, channels: Collection[str]) -> Iterator[Invalid]:
    if channel not in channels:
        yield unknown_channel(channel, path, channels)


def _faults_of_values(values: Mapping[str, object], path: str) -> Iterator[Invalid]:
    fields: set[str] = set()
    for written in values:
        if (field := field_name(written)) in fields:
            yield Invalid("FIELD_REPEATED", f"The field {field!r} is there twice.", f"{path}.{written}")
        fields.add(field)


# strategy and times


def _faults_of_wait(delivery: NewDelivery) -> Iterator[Invalid]:
    if delivery.wait is None:
        return
    if delivery.strategy is not Strategy.FIRST:
        yield Invalid("WAIT_WITHOUT_FIRST", "A wait belongs to the strategy first.", "wait")
    elif not _SHORTEST_WAIT <= delivery.wait <= _LONGEST_WAIT:
        yield Invalid("WAIT_OUT_OF_RANGE", "A wait is from one second to 30 days.", "wait")


def _faults_of_expiry(delivery: NewDelivery, now: datetime) -> Iterator[Invalid]:
    if delivery.expires_at and delivery.expires_at <= max(delivery.deliver_at or now, now):
        yield Invalid("EXPIRES_BEFORE_DUE", "The delivery would expire before it is due.", "expires_at")
