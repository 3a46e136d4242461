"""Every rule of an order that needs no store, in one place for all who order: the API, bulk, previews, bots, scenarios,
jobs. Pure.

Each fault is an `Invalid` with a stable code and the path of the field, as the API names it. The rules that need the
store (people, groups, quiet hours, files) are in `core.orders.preparation`, which calls this first.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import chain, islice

from msgspec import UNSET, Struct
from msgspec.structs import replace

from core.errors import MOST_SAID, Invalid, InvalidMany, raise_first
from core.model.clock import from_wall, is_skipped
from core.model.content import Attachment, Button, Content, ParseMode
from core.model.delivery import Audience, NewDelivery, Recipient, Strategy
from core.model.json_form import compact_json
from core.model.people import fault_of_address, unknown_channel
from core.model.text.characters import is_blank, refusal
from core.model.text.personal import PersonalTemplate, field_name
from core.model.text.text_marks import broken_mark, tokens
from core.orders.order import Addressee, Order
from core.orders.question_rules import faults_of_escalation, faults_of_need

MOST_FAULTS = 20
"""Faults reported at once."""
_NAMING = ("id", "group", "supergroup", "table", "follow_up")
_PERSONAL = ("name", "contacts", "values", "locale")
_SHORTEST_WAIT, _LONGEST_WAIT = timedelta(seconds=1), timedelta(days=30)
MAX_SIZE = 32_768
"""Bytes of the content as JSON; the files themselves do not count."""
MAX_BUTTONS = 100
"""Of each kind, inline and reply: what Telegram accepts."""
MAX_ATTACHMENTS = 50
PAST = timedelta(minutes=5)
"""The greatest age of a time: clocks differ, and a call takes a while."""
FAR = timedelta(days=366)
_NO_CONTENT = Content()
_CLOCK = r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})"
_DATE = r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})(?:\.(?P<year>\d{4}))?"
_TYPED = re.compile(rf"(?:(?:{_DATE}|(?P<tomorrow>завтра|tomorrow))\s+(?:в\s+|at\s+)?)?{_CLOCK}", re.IGNORECASE)
_DAY = timedelta(days=1)


def check(order: Order, channels: Sequence[str], now: datetime) -> list[Invalid]:
    """Return the first faults of an order, none if it may be prepared. `channels`: the known ones."""
    return list(islice(_faults(order, {*channels, *_answered(order)}, now), MOST_FAULTS))


def refuse(faults: Sequence[Invalid]) -> None:
    """Refuse an order that has faults. Raises Invalid, InvalidMany for several."""
    if len(faults) > 1:
        raise InvalidMany(" ".join(one.detail for one in faults[:MOST_SAID]), faults)
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
    yield from _faults_of_addressees(order, channels)
    if order.personal is False and order.has_values:
        yield Invalid("VALUES_NOT_PERSONAL", "Values belong to a personal text.", "personal")
    for number, channel in enumerate(delivery.channels):
        if channel not in channels:
            yield unknown_channel(channel, f"channels.{number}", channels)
    if delivery.question:
        yield from faults_of_escalation(delivery.question, delivery.channels, channels)
        yield from faults_of_need(delivery.question, delivery.strategy)
    yield from _faults_of_times(order, now)
    if delivery.history_key and delivery.history_key.sender != str(delivery.sender.id):
        detail = f"The key was made for the sender {delivery.history_key.sender!r}."
        yield Invalid("HISTORY_KEY_OF_ANOTHER_SENDER", detail, "history_key")
    is_personal = order.is_personal
    for of_language in (delivery, *(replace(delivery, text=text, texts={}) for text in delivery.texts.values())):
        yield from faults_of_content(_neutral(of_language) if is_personal else of_language)


def _faults_of_follow_up(order: Order) -> Iterator[Invalid]:
    if len(order.addressees) > 1:
        yield Invalid("FOLLOW_UP_ALONE", "A follow-up goes to no further recipients.", "recipients")
    if order.audience is not Audience.STUDENTS:
        yield Invalid("FOLLOW_UP_ALONE", "A follow-up goes to recipients of its delivery, whoever they are.", "to")


def _faults_of_names(delivery: NewDelivery) -> Iterator[Invalid]:
    """Emit ids and names that would be no part of a key or a log: no control characters, no line breaks."""
    names = (
        ("sender.id", delivery.sender.id),
        ("kind", delivery.kind),
        ("origin", delivery.origin),
        ("lane", delivery.lane),
        *((f"tags.{number}", tag) for number, tag in enumerate(delivery.tags)),
    )
    for path, name in names:
        if isinstance(name, str) and (refused := refusal(name)):
            yield Invalid("NOT_PRINTABLE", refused, path)


# recipients


def _faults_of_addressees(order: Order, channels: Collection[str]) -> Iterator[Invalid]:
    is_follow_up = False
    for number, one in enumerate(order.addressees):
        if isinstance(one, Addressee):
            yield from _faults_of_addressee(one, f"recipients.{number}", channels)
            is_follow_up = is_follow_up or bool(one.follow_up)
    if is_follow_up:
        yield from _faults_of_follow_up(order)


def _faults_of_addressee(given: Addressee, path: str, channels: Collection[str]) -> Iterator[Invalid]:
    if fault := _fault_of_form(given, path):
        yield fault
    for field, name in (("id", given.id), ("group", given.group), ("supergroup", given.supergroup)):
        if isinstance(name, str) and (refused := refusal(name)):
            yield Invalid("NOT_PRINTABLE", refused, f"{path}.{field}")
    yield from _faults_of_contacts(given.contacts or {}, f"{path}.contacts", channels)
    if given.values:
        yield from _faults_of_values(given.values, f"{path}.values")


def _faults_of_contacts(
    contacts: Mapping[str, str | Sequence[str]], path: str, channels: Collection[str]
) -> Iterator[Invalid]:
    for channel, addresses in contacts.items():
        place = f"{path}.{channel}"
        if channel not in channels:
            yield unknown_channel(channel, place, channels)
        listed = [(place, addresses)] if isinstance(addresses, str) else _numbered(place, addresses)
        for of_one, address in listed:
            if fault := fault_of_address(channel, address, of_one):
                yield fault


def _numbered(path: str, values: Sequence[str]) -> list[tuple[str, str]]:
    return [(f"{path}.{number}", value) for number, value in enumerate(values)]


def _fault_of_form(given: Addressee, path: str) -> Invalid | None:
    """Return what keeps it from being one person, one group, one supergroup, one table or one follow-up."""
    if (given.sheet or given.encoding) and not given.table:
        return Invalid("RECIPIENT_AMBIGUOUS", "A sheet and an encoding belong to a table.", path)
    if given.of and not given.follow_up:
        return Invalid("RECIPIENT_AMBIGUOUS", "The field of belongs to a follow-up.", f"{path}.of")
    named = _given_fields(given, _NAMING)
    if named == ["id"]:
        return None
    if not named:
        return Invalid("RECIPIENT_WITHOUT_ID", "A recipient needs an id.", f"{path}.id")
    if len(named) > 1:
        return Invalid("RECIPIENT_AMBIGUOUS", f"Only one of {' and '.join(named)} is allowed.", path)
    if personal := _given_fields(given, _PERSONAL):
        detail = f"A {named[0].replace('_', '-')} has no {' and '.join(personal)}; these belong to a person."
        return Invalid("RECIPIENT_AMBIGUOUS", detail, path)
    return None


def _given_fields(given: Addressee, names: Sequence[str]) -> list[str]:
    return [name for name in names if getattr(given, name) is not UNSET]


def _faults_of_values(values: Mapping[str, object], path: str) -> Iterator[Invalid]:
    fields: set[str] = set()
    for written in values:
        if (field := field_name(written)) in fields:
            yield Invalid("FIELD_REPEATED", f"The field {field!r} is there twice.", f"{path}.{written}")
        fields.add(field)


# strategy and times


def _faults_of_times(order: Order, now: datetime) -> Iterator[Invalid]:
    delivery = order.delivery
    if fault := _fault_of_wait(delivery):
        yield fault
    yield from faults_of_time(delivery.deliver_at, now, is_far=order.far)
    if delivery.expires_at and delivery.expires_at <= max(delivery.deliver_at or now, now):
        yield Invalid("EXPIRES_BEFORE_DUE", "The delivery would expire before it is due.", "expires_at")


def _fault_of_wait(delivery: NewDelivery) -> Invalid | None:
    if delivery.wait is None:
        return None
    if delivery.strategy is not Strategy.FIRST:
        return Invalid("WAIT_WITHOUT_FIRST", "A wait belongs to the strategy first.", "wait")
    is_in_range = _SHORTEST_WAIT <= delivery.wait <= _LONGEST_WAIT
    return None if is_in_range else Invalid("WAIT_OUT_OF_RANGE", "A wait is from one second to 30 days.", "wait")


def _neutral(given: NewDelivery) -> NewDelivery:
    """Return the delivery with a letter in place of each value. Raises Invalid FIELD_MALFORMED."""
    template = PersonalTemplate(given.text, given.content)
    values = dict.fromkeys(template.fields, "x")
    return replace(given, text=template.text(values), content=template.content(values))


def check_content(delivery: NewDelivery) -> None:
    """Check the content of a delivery. Raises Invalid TOO_MANY_BUTTONS, BUTTON_MALFORMED, TOO_MANY_ATTACHMENTS,
    ATTACHMENT_MALFORMED, CONTENT_TOO_LARGE, TEXT_EMPTY, MARKS_BROKEN. Only a text with attachments may be empty, or one
    with an edit, which then changes the buttons.
    """
    raise_first(faults_of_content(delivery))


def faults_of_content(delivery: NewDelivery) -> Iterator[Invalid]:
    content = delivery.content or _NO_CONTENT
    if delivery.content:
        yield from _button_errors(content)
        yield from _attachment_errors(content)
        if len(compact_json(content).encode()) > MAX_SIZE:
            yield Invalid("CONTENT_TOO_LARGE", f"At most {MAX_SIZE} bytes of content are allowed.", "content")
    if not (_shows_text(delivery.text, content.parse_mode) or content.attachments or (content.edit and content.inline)):
        yield Invalid("TEXT_EMPTY", "A text without attachments shows at least one character.", "text")
    if broken := broken_mark(delivery.text, content.parse_mode):
        detail = f"The text cannot be read as {content.parse_mode}: character {broken.position}: {broken.reason}."
        yield Invalid("MARKS_BROKEN", detail, "text")


def _shows_text(text: str, mode: ParseMode) -> bool:
    return any(not is_blank(token.shown) for token in tokens(text, mode))


def _button_errors(content: Content) -> Iterator[Invalid]:
    for name, rows in (("inline", content.inline), ("reply", content.reply or ())):
        if sum(map(len, rows)) > MAX_BUTTONS:
            yield Invalid("TOO_MANY_BUTTONS", f"At most {MAX_BUTTONS} buttons are allowed.", f"content.{name}")
    if not all(map(_is_valid_button, chain.from_iterable(content.inline))):
        detail = "A button has a text, and either data or a url."
        yield Invalid("BUTTON_MALFORMED", detail, "content.inline")
    if any(is_blank(text) for text in chain.from_iterable(content.reply or ())):
        yield Invalid("BUTTON_MALFORMED", "A button has a text.", "content.reply")
    if not set(content.request_contact) <= set(chain.from_iterable(content.reply or ())):
        yield Invalid("BUTTON_MALFORMED", "It names buttons of reply.", "content.request_contact")


def _is_valid_button(button: Button) -> bool:
    return not is_blank(button.text) and bool(button.data) != bool(button.url)


def _attachment_errors(content: Content) -> Iterator[Invalid]:
    path = "content.attachments"
    if len(content.attachments) > MAX_ATTACHMENTS:
        yield Invalid("TOO_MANY_ATTACHMENTS", f"At most {MAX_ATTACHMENTS} attachments are allowed.", path)
    for number, one in enumerate(content.attachments):
        if not _has_one_source(one):
            detail = "An attachment has exactly one of path, url, provider_id and file; a path is absolute."
            yield Invalid("ATTACHMENT_MALFORMED", detail, f"{path}.{number}")


def _has_one_source(attachment: Attachment) -> bool:
    sources = [
        source for source in (attachment.path, attachment.url, attachment.provider_id, attachment.file) if source
    ]
    return len(sources) == 1 and (not attachment.path or attachment.path.startswith("/"))


def check_time(requested: datetime | None, now: datetime, *, is_far: bool) -> None:
    """Check a requested time. Raises Invalid DELIVER_AT_PAST, DELIVER_AT_FAR."""
    raise_first(faults_of_time(requested, now, is_far=is_far))


def faults_of_time(requested: datetime | None, now: datetime, *, is_far: bool) -> Iterator[Invalid]:
    """Emit the faults of a requested time: DELIVER_AT_PAST, DELIVER_AT_FAR. `is_far`: the caller knows that it is far
    ahead.
    """
    if requested is None:
        return
    if requested < now - PAST:
        detail = f"{requested:%FT%TZ} has passed; it is {now:%FT%TZ}. Without a time a delivery is sent at once."
        yield Invalid("DELIVER_AT_PAST", detail, "deliver_at")
    if requested > now + FAR and not is_far:
        detail = f"{requested:%FT%TZ} is more than a year ahead. If that is meant, set far to true."
        yield Invalid("DELIVER_AT_FAR", detail, "deliver_at")


class TimePassed(ValueError):
    """The typed time is in the past."""


class TypedTime(Struct, frozen=True):
    """`at`: in UTC. `skipped`: the typed time of day, if the clock is put forward over it; `at` is the next minute."""

    at: datetime
    skipped: str = ""


def read_time(typed: str, now: datetime, timezone: tzinfo) -> TypedTime | None:
    """Return the moment of `14:30`, `tomorrow 9:00`, `25.11 14:30` or `25.11.2026 14:30` in a time zone; None if it is
    none of these. A clock time alone is the next such moment. Raises TimePassed.
    """
    found = _TYPED.fullmatch(typed.strip())
    if found is None:
        return None
    today = _wall(now, timezone)
    try:
        wall = _on_date(today, found).replace(hour=int(found["hour"]), minute=int(found["minute"]))
        days = [wall] if found["day"] or found["tomorrow"] else [wall, wall + _DAY]
        moments = [(from_wall(day, timezone, now), day) for day in days]
    except (ValueError, OverflowError):
        return None
    at, day = next((moment for moment in moments if moment[0] > now), moments[-1])
    if at <= now:
        raise TimePassed
    return TypedTime(at, f"{day:%H:%M}" if is_skipped(day, timezone) else "")


def _wall(at: datetime, timezone: tzinfo) -> datetime:
    """Return what the clock of a time zone shows, naive, in whole minutes."""
    return at.astimezone(timezone).replace(second=0, microsecond=0, tzinfo=None, fold=0)


def _on_date(today: datetime, found: re.Match[str]) -> datetime:
    """Return the day of a typed time. Raises ValueError for a date that does not exist."""
    if not found["day"]:
        return today + _DAY if found["tomorrow"] else today
    return today.replace(year=int(found["year"] or today.year), month=int(found["month"]), day=int(found["day"]))
