"""Makes an order of a validated body: the checks that a schema cannot state.

Called by `delivery.api.deliveries.sending` and `delivery.api.deliveries.bulk`; its result goes to
`core.orders`.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert

from core.model.clock import to_ms
from core.model.contacts import recipient_notation
from core.model.contacts.addresses import without_duplicates
from core.model.delivery import NewDelivery, Recipient, Sender, Strategy
from core.model.history_key import HistoryKey, Id
from core.model.people import canonical_id, faults_of_address
from core.model.question import Late, Option, Question
from core.model.text.characters import nfc, refusal, without_marks
from core.model.text.personal import field_name
from core.orders import Addressee, GroupRef, Order, SupergroupRef, TableRef, UserRef
from core.orders.question_rules import locale_of, options_of
from delivery.api.deliveries.delivery_request import DeliveryRequest, QuestionRequest, RecipientRequest
from delivery.http.context import Request
from delivery.http.fields.durations import read_duration
from delivery.http.fields.timestamps import read_time
from delivery.http.input.validation import MAX_ERRORS, field_errors
from delivery.http.options import Options
from delivery.http.responses.problems import FieldError, InvalidFields, invalid_field

Errors = list[FieldError]
_SHORTEST_WAIT, _LONGEST_WAIT = timedelta(seconds=1), timedelta(days=30)


class ValidationContext(Struct, frozen=True):
    """The limits and facts that a delivery is checked against."""

    tenant: str
    channels: Sequence[str]  # the known ones
    options: Options

    @classmethod
    async def of(cls, request: Request[Any, Any]) -> "ValidationContext":
        register = await request.services.core.channels.current()
        return cls(request.tenant, register.names, request.options)


def make_order(given: DeliveryRequest, context: ValidationContext) -> Order:
    """Return the order. Raises `InvalidFields` with all errors."""
    recipients = _as_objects(given.recipients)
    delivery = _convert(given, context)
    addressees = [_addressee(one, number) for number, one in enumerate(recipients)]
    has_values = any(isinstance(one, Recipient | UserRef) and one.values for one in addressees)
    has_table = any(isinstance(one, TableRef) for one in addressees)
    is_personal = has_values or has_table if isinstance(given.personal, UnsetType) else given.personal
    errors: Errors = []
    if has_values and not is_personal:
        errors.append(FieldError("personal", "VALUES_NOT_PERSONAL", "Values belong to a personal text."))
    _check_names(delivery, errors)
    _check_recipients(recipients, context, errors)
    _check_choices(delivery, given, context, errors)
    if errors:
        raise InvalidFields(errors[:MAX_ERRORS])
    return Order(delivery, addressees, given.urgent is True, given.far is True, is_personal)


def _convert(given: DeliveryRequest, context: ValidationContext) -> NewDelivery:
    sender, max_days_ahead = given.sender, context.options.max_days_ahead
    return NewDelivery(
        tenant=context.tenant,
        sender=Sender(canonical_id(sender.id), sender.name or None, sender.role or None),
        text=given.text or "",
        recipients=(),
        channels=given.channels or context.channels,
        origin=given.origin or "api",
        deliver_at=read_time(given.deliver_at, "deliver_at", max_days_ahead) if given.deliver_at else None,
        expires_at=read_time(given.expires_at, "expires_at", max_days_ahead) if given.expires_at else None,
        history_key=HistoryKey.parse(given.history_key) if given.history_key else None,
        lane=nfc(given.lane) if given.lane else None,
        priority=5 if isinstance(given.priority, UnsetType) else given.priority,
        kind=given.kind or "message",
        tags=tuple(dict.fromkeys(map(nfc, given.tags))) if given.tags else (),
        strategy=Strategy(given.strategy or Strategy.ALL),
        wait=read_duration(given.wait) if given.wait else None,
        content=given.content.content() if given.content else None,
        question=_question(given.answer, given.text or "", max_days_ahead) if given.answer else None,
    )


def _question(given: QuestionRequest, text: str, max_days_ahead: int) -> Question:
    locale = locale_of(text)
    until = read_time(given.until, "answer.until", max_days_ahead) if given.until else None
    options = [Option(nfc(one.key), one.text) for one in given.options or ()]
    return Question(
        kind=given.kind,
        options=options_of(given.kind, options, locale),
        locale=locale,
        until=to_ms(until) if until else 0,
        change=given.change is not False,
        late=Late(given.late or Late.KEEP),
    )


# recipients


def _as_objects(given: Sequence[RecipientRequest | str]) -> list[RecipientRequest]:
    """Return every recipient in the form of an object; a recipient may be given as a line of text."""
    return [_read_line(one, number) if isinstance(one, str) else one for number, one in enumerate(given)]


def _read_line(line: str, number: int) -> RecipientRequest:
    path = f"recipients.{number}"
    try:
        value = recipient_notation.read(line)
    except ValueError as error:
        raise invalid_field(path, "RECIPIENT_MALFORMED", str(error)) from None
    try:
        return convert(value, RecipientRequest)
    except ValidationError:
        errors = field_errors(value, RecipientRequest)
        raise InvalidFields([FieldError(f"{path}.{one.path}", one.code, one.message) for one in errors]) from None


def _addressee(given: RecipientRequest, number: int) -> Addressee:
    if given.table or given.sheet or given.encoding:
        return _table(given, f"recipients.{number}")
    if isinstance(given.id, UnsetType) or given.group or given.supergroup:
        return _group(given, f"recipients.{number}")
    values = _values(given.values, f"recipients.{number}.values") if given.values else {}
    if isinstance(given.contacts, UnsetType):
        return UserRef(canonical_id(given.id), given.name or None, values, f"recipients.{number}")
    contacts: dict[str, Sequence[str]] = {}
    for channel, addresses in given.contacts.items():
        if addresses:
            contacts[channel] = _unique(channel, [addresses] if isinstance(addresses, str) else addresses)
    name = given.name or None
    return Recipient(canonical_id(given.id), name, contacts, values=values, place=f"recipients.{number}")


def _values(given: Mapping[str, str | float | None], path: str) -> Mapping[str, str]:
    """Return the values of a recipient by the names of their fields. Raises `InvalidFields` FIELD_REPEATED."""
    values: dict[str, str] = {}
    for written, value in given.items():
        if (field := field_name(written)) in values:
            raise invalid_field(f"{path}.{written}", "FIELD_REPEATED", f"The field {field!r} is there twice.")
        values[field] = "" if value is None else str(value)
    return values


def _group(given: RecipientRequest, path: str) -> GroupRef | SupergroupRef:
    """Read a recipient that is a group or a supergroup. Raises `InvalidFields` RECIPIENT_AMBIGUOUS,
    RECIPIENT_WITHOUT_ID.
    """
    named = [name for name in ("id", "group", "supergroup") if not isinstance(getattr(given, name), UnsetType)]
    personal = [name for name in ("name", "contacts", "values") if not isinstance(getattr(given, name), UnsetType)]
    if not named:
        raise invalid_field(f"{path}.id", "RECIPIENT_WITHOUT_ID", "A recipient needs an id.")
    if len(named) > 1:
        raise invalid_field(path, "RECIPIENT_AMBIGUOUS", f"Only one of {' and '.join(named)} is allowed.")
    if personal:
        detail = f"A {named[0]} has no {' and '.join(personal)}; these belong to a person."
        raise invalid_field(path, "RECIPIENT_AMBIGUOUS", detail)
    return GroupRef(nfc(given.group)) if given.group else SupergroupRef(nfc(given.supergroup or ""))


def _table(given: RecipientRequest, path: str) -> TableRef:
    """Read a recipient that is a table. Raises `InvalidFields` RECIPIENT_AMBIGUOUS."""
    others = ("id", "group", "supergroup", "name", "contacts", "values")
    more = [name for name in others if getattr(given, name) is not UNSET]
    if more or not given.table:
        detail = f"A table has no {' and '.join(more)}." if more else "A sheet and an encoding belong to a table."
        raise invalid_field(path, "RECIPIENT_AMBIGUOUS", detail)
    return TableRef(given.table, given.sheet or "", given.encoding or "", path)


def _unique(channel: str, addresses: Sequence[str]) -> Sequence[str]:
    """Return each address once, as it was written, but without the invisible marks round it."""
    plain = [without_marks(nfc(one)) for one in addresses]
    return plain if len(plain) == 1 else without_duplicates(channel, plain)


# checks


def _check_names(delivery: NewDelivery, errors: Errors) -> None:
    """Check ids and names, which become parts of keys and logs: no control characters, no line breaks."""
    _check_printable("sender.id", delivery.sender.id, errors)
    _check_printable("kind", delivery.kind, errors)
    _check_printable("origin", delivery.origin, errors)
    _check_printable("lane", delivery.lane or "", errors)
    for number, tag in enumerate(delivery.tags):
        _check_printable(f"tags.{number}", tag, errors)


def _check_printable(path: str, value: Id, errors: Errors) -> None:
    if isinstance(value, str) and (refused := refusal(value)):
        errors.append(FieldError(path, "NOT_PRINTABLE", refused))


def _check_recipients(given: Sequence[RecipientRequest], context: ValidationContext, errors: Errors) -> None:
    """Check the recipients. The paths of errors are those of the request."""
    for number, one in enumerate(given):
        if len(errors) >= MAX_ERRORS:
            return
        _check_printable(f"recipients.{number}.id", one.id or 0, errors)
        _check_printable(f"recipients.{number}.group", one.group or "", errors)
        _check_printable(f"recipients.{number}.supergroup", one.supergroup or "", errors)
        for channel, addresses in (one.contacts or {}).items():
            path = f"recipients.{number}.contacts.{channel}"
            _check_channel(path, channel, context, errors)
            errors += _address_errors(path, channel, addresses)


def _address_errors(path: str, channel: str, given: str | Sequence[str]) -> Errors:
    """Return the errors of an address, or of a list of them."""
    listed = [(path, given)] if isinstance(given, str) else [(f"{path}.{n}", one) for n, one in enumerate(given)]
    faults = [fault for place, one in listed for fault in faults_of_address(channel, one, place)]
    return [FieldError(fault.path, fault.code, fault.detail) for fault in faults]


def _check_choices(delivery: NewDelivery, given: DeliveryRequest, context: ValidationContext, errors: Errors) -> None:
    """Check fields that few deliveries have; each is checked only if it is given."""
    if not given.text and not given.content:
        errors.append(FieldError("text", "REQUIRED", "text is missing."))
    if given.channels:
        _check_channels(given.channels, context, errors)
    if given.strategy or given.wait:
        _check_strategy(delivery, given, errors)
    if delivery.expires_at:
        _check_expiry(delivery.expires_at, delivery.deliver_at, errors)
    if delivery.history_key:
        _check_own_key(delivery.history_key, delivery.sender, errors)


def _check_channels(channels: Sequence[str], context: ValidationContext, errors: Errors) -> None:
    for number, channel in enumerate(channels):
        _check_channel(f"channels.{number}", channel, context, errors)


def _check_channel(path: str, channel: str, context: ValidationContext, errors: Errors) -> None:
    if channel not in context.channels:
        errors.append(FieldError(path, "UNKNOWN_CHANNEL", f"The channel {channel!r} is unknown."))


def _check_strategy(delivery: NewDelivery, given: DeliveryRequest, errors: Errors) -> None:
    if not given.wait:
        return
    if delivery.strategy is not Strategy.FIRST:
        errors.append(FieldError("wait", "WAIT_WITHOUT_FIRST", "A wait belongs to the strategy first."))
    elif delivery.wait is None:
        errors.append(FieldError("wait", "WAIT_MALFORMED", "A wait is an ISO 8601 duration like PT2M or P1D."))
    elif not _SHORTEST_WAIT <= delivery.wait <= _LONGEST_WAIT:
        errors.append(FieldError("wait", "WAIT_OUT_OF_RANGE", "A wait is from one second to 30 days."))


def _check_expiry(expires_at: datetime, deliver_at: datetime | None, errors: Errors) -> None:
    now = datetime.now(UTC)
    if expires_at <= max(deliver_at or now, now):
        errors.append(FieldError("expires_at", "EXPIRES_BEFORE_DUE", "The delivery would expire before it is due."))


def _check_own_key(key: HistoryKey, sender: Sender, errors: Errors) -> None:
    if key.sender != str(sender.id):
        detail = f"The key was made for the sender {key.sender!r}."
        errors.append(FieldError("history_key", "HISTORY_KEY_OF_ANOTHER_SENDER", detail))
