"""Makes a new delivery of a validated body: the checks that a schema cannot state, and the merging of recipients.

Called by `delivery.endpoints.deliveries` and `delivery.endpoints.bulk`; its result goes to `core.history.deliveries`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct, UnsetType, ValidationError, convert

from core.model.addresses import without_duplicates
from core.model.delivery import NewDelivery, Recipient, Sender, Strategy
from core.model.history_key import HistoryKey, Id
from delivery.http.context import Request
from delivery.http.options import Options
from delivery.http.problems import InvalidFields, invalid_field
from delivery.http.timestamps import read_time
from delivery.http.validation import MAX_ERRORS, field_errors
from delivery.schemas import recipient_notation, requests
from delivery.schemas.durations import read_duration
from delivery.schemas.responses import FieldError

Errors = list[FieldError]

_SHORTEST_WAIT, _LONGEST_WAIT = timedelta(seconds=1), timedelta(days=30)


class Rules(Struct, frozen=True):
    """What a delivery is checked against."""

    tenant: str
    channels: Sequence[str]  # the known ones
    options: Options

    @classmethod
    async def of(cls, request: Request[Any, Any]) -> "Rules":
        register = await request.services.channels.current()
        return cls(request.tenant, register.names, request.options)


def make_delivery(given: requests.DeliveryRequest, rules: Rules) -> NewDelivery:
    """The delivery. Raises `InvalidFields` with all errors."""
    recipients = _as_objects(given.recipients)
    delivery = _convert(given, recipients, rules)
    errors: Errors = []
    if not _is_valid(delivery, rules):
        _check_size(delivery, rules, errors)
        _check_names(delivery, errors)
        _check_recipients(recipients, rules, errors)
    _check_choices(delivery, given, rules, errors)
    if errors:
        raise InvalidFields(errors[:MAX_ERRORS])
    return delivery


def _convert(given: requests.DeliveryRequest, recipients: Sequence[requests.Recipient], rules: Rules) -> NewDelivery:
    sender, max_days_ahead = given.sender, rules.options.max_days_ahead
    return NewDelivery(
        tenant=rules.tenant,
        sender=Sender(sender.id, sender.name or None, sender.role or None),
        text=given.text,
        recipients=_recipients(recipients),
        channels=given.channels or rules.channels,
        origin=given.origin or "api",
        deliver_at=read_time(given.deliver_at, "deliver_at", max_days_ahead) if given.deliver_at else None,
        expires_at=read_time(given.expires_at, "expires_at", max_days_ahead) if given.expires_at else None,
        history_key=HistoryKey.parse(given.history_key) if given.history_key else None,
        lane=given.lane or None,
        priority=5 if isinstance(given.priority, UnsetType) else given.priority,
        kind=given.kind or "message",
        tags=tuple(dict.fromkeys(given.tags)) if given.tags else (),
        strategy=Strategy(given.strategy or Strategy.ALL),
        wait=read_duration(given.wait) if given.wait else None,
    )


# recipients


def _as_objects(given: Sequence[requests.Recipient | str]) -> list[requests.Recipient]:
    """Every recipient in the form of an object; a recipient may be given as a line of text."""
    return [_read_line(one, number) if isinstance(one, str) else one for number, one in enumerate(given)]


def _read_line(line: str, number: int) -> requests.Recipient:
    path = f"recipients.{number}"
    try:
        value = recipient_notation.read(line)
    except ValueError as error:
        raise invalid_field(path, "RECIPIENT_MALFORMED", str(error)) from None
    try:
        return convert(value, requests.Recipient)
    except ValidationError:
        errors = field_errors(value, requests.Recipient)
        raise InvalidFields([FieldError(f"{path}.{one.path}", one.code, one.message) for one in errors]) from None


def _recipients(given: Sequence[requests.Recipient]) -> Sequence[Recipient]:
    """Each recipient once, with the contacts of all its mentions. Equal ids of different types (7, "7") are one."""
    if len(given) == 1:
        return (_recipient(given[0], 0),)
    merged: dict[str, Recipient] = {}
    repeated: dict[str, list[Recipient]] = {}
    for number, item in enumerate(given):
        one = _recipient(item, number)
        name = str(one.id)
        if merged.setdefault(name, one) is not one:
            repeated.setdefault(name, [merged[name]]).append(one)
    for name, parts in repeated.items():
        merged[name] = _merged(parts)
    return list(merged.values())


def _recipient(given: requests.Recipient, number: int) -> Recipient:
    if isinstance(given.id, UnsetType) or given.group or given.supergroup:
        raise _not_a_person(given, f"recipients.{number}")
    contacts: dict[str, Sequence[str]] = {}
    for channel, addresses in (given.contacts or {}).items():
        if addresses:
            contacts[channel] = (addresses,) if isinstance(addresses, str) else _unique(channel, addresses)
    return Recipient(given.id, given.name or None, contacts)


def _not_a_person(given: requests.Recipient, path: str) -> InvalidFields:
    named = [name for name in ("id", "group", "supergroup") if not isinstance(getattr(given, name), UnsetType)]
    if len(named) > 1:
        return invalid_field(path, "RECIPIENT_AMBIGUOUS", f"Only one of {' and '.join(named)} is allowed.")
    if not named:
        return invalid_field(f"{path}.id", "RECIPIENT_WITHOUT_ID", "A recipient needs an id.")
    name = getattr(given, named[0])
    return invalid_field(f"{path}.{named[0]}", f"{named[0].upper()}_NOT_FOUND", f"There is no {named[0]} {name!r}.")


def _merged(parts: Sequence[Recipient]) -> Recipient:
    """One recipient from several with the same id: all contacts, the first name."""
    addresses: dict[str, list[str]] = {}
    for part in parts:
        for channel, of_part in part.contacts.items():
            addresses.setdefault(channel, []).extend(of_part)
    contacts = {channel: _unique(channel, found) for channel, found in addresses.items()}
    return Recipient(parts[0].id, next((part.name for part in parts if part.name), None), contacts)


def _unique(channel: str, addresses: Sequence[str]) -> Sequence[str]:
    return addresses if len(addresses) == 1 else without_duplicates(channel, addresses)


# checks


def _is_valid(delivery: NewDelivery, rules: Rules) -> bool:
    """Whether size, names and recipients are valid, as in most deliveries; only if not, the errors are searched for.
    Merging loses no contact, so an error of a recipient in the request is also in the delivery.
    """
    names = "".join((str(delivery.sender.id), delivery.kind, delivery.origin, delivery.lane or "", *delivery.tags))
    if not names.isprintable() or delivery.text.isspace() or len(delivery.recipients) > rules.options.max_recipients:
        return False
    channels = rules.channels
    for person in delivery.recipients:
        if isinstance(person.id, str) and not person.id.isprintable():
            return False
        for channel, addresses in person.contacts.items():
            if channel not in channels or not "".join(addresses).isprintable():
                return False
    return True


def _check_size(delivery: NewDelivery, rules: Rules, errors: Errors) -> None:
    if delivery.text.isspace():
        errors.append(FieldError("text", "TEXT_EMPTY", "The text is only white space."))
    limit = rules.options.max_recipients
    if len(delivery.recipients) > limit:
        errors.append(FieldError("recipients", "TOO_MANY_RECIPIENTS", f"At most {limit} recipients are allowed."))


def _check_names(delivery: NewDelivery, errors: Errors) -> None:
    """Ids and names become parts of keys and logs: no control characters, no line breaks."""
    _check_printable("sender.id", delivery.sender.id, errors)
    _check_printable("kind", delivery.kind, errors)
    _check_printable("origin", delivery.origin, errors)
    _check_printable("lane", delivery.lane or "", errors)
    for number, tag in enumerate(delivery.tags):
        _check_printable(f"tags.{number}", tag, errors)


def _check_printable(path: str, value: Id, errors: Errors) -> None:
    if isinstance(value, str) and not value.isprintable():
        errors.append(FieldError(path, "NOT_PRINTABLE", "Only printable characters are allowed."))


def _check_recipients(given: Sequence[requests.Recipient], rules: Rules, errors: Errors) -> None:
    """The paths are those of the request."""
    for number, one in enumerate(given):
        if len(errors) >= MAX_ERRORS:
            return
        _check_printable(f"recipients.{number}.id", one.id or 0, errors)
        for channel, addresses in (one.contacts or {}).items():
            path = f"recipients.{number}.contacts.{channel}"
            _check_channel(path, channel, rules, errors)
            _check_printable(path, "".join(addresses), errors)


def _check_choices(delivery: NewDelivery, given: requests.DeliveryRequest, rules: Rules, errors: Errors) -> None:
    """Fields that few deliveries have; each is checked only if it is given."""
    if given.channels:
        _check_channels(given.channels, rules, errors)
    if given.strategy or given.wait:
        _check_strategy(delivery, given, errors)
    if delivery.expires_at:
        _check_expiry(delivery.expires_at, delivery.deliver_at, errors)
    if delivery.history_key:
        _check_own_key(delivery.history_key, delivery.sender, errors)


def _check_channels(channels: Sequence[str], rules: Rules, errors: Errors) -> None:
    for number, channel in enumerate(channels):
        _check_channel(f"channels.{number}", channel, rules, errors)


def _check_channel(path: str, channel: str, rules: Rules, errors: Errors) -> None:
    if channel not in rules.channels:
        errors.append(FieldError(path, "UNKNOWN_CHANNEL", f"The channel {channel!r} is unknown."))


def _check_strategy(delivery: NewDelivery, given: requests.DeliveryRequest, errors: Errors) -> None:
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
