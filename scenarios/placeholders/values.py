"""Values: found by dotted paths, and read as text, as numbers and as moments by the modifiers of placeholders. Pure.

A path is `user.phones.0.number`, `items.-1`, the same as `user.phones[0].number`. Only mappings and lists are entered,
never the attributes of an object.
"""

import json
import re
from collections.abc import Container, Mapping, Sequence
from datetime import UTC, date, datetime, time, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TypeGuard

from core.model.clock import to_utc
from scenarios.bot.data import MISSING, Data

LARGEST = Decimal(10) ** 40
"""Numbers from here on are not calculated with."""

ARITHMETIC = Context(prec=60, rounding=ROUND_HALF_UP)

_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""A moment with its zone as a machine or a modifier writes it; a person would not."""
_WRITTEN = ("%d.%m.%Y %H:%M", "%d.%m.%Y", "%d.%m.%Y %H:%M:%S")


def as_text(value: Data) -> str:
    """Return a value in a text: nothing for null, `a, b` for a list, JSON for a mapping."""
    if value is None or value is MISSING:
        return ""
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return ", ".join(map(as_text, value)) if is_list(value) else str(value)


def for_people(value: Data, zone: tzinfo) -> str:
    """Return a value in a text that people read: moments in ISO 8601 as `15.12.2026 12:00` in `zone`."""
    if is_list(value):
        return ", ".join(for_people(one, zone) for one in value)
    text = as_text(value)
    moment = as_moment(text, zone) if _MOMENT.fullmatch(text) else None
    return moment.strftime("%d.%m.%Y %H:%M") if moment else text


def is_list(value: Data) -> TypeGuard[Sequence[Data]]:
    """Return whether a value has elements; a text has none."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def as_list(value: Data) -> list[Data]:
    """Return a list as it is, nothing as an empty one, and a single value as a list of one."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def is_empty(value: Data) -> bool:
    """Return whether a value is missing, null or an empty text. 0, false and an empty list are values."""
    return value is MISSING or value is None or value == ""


def is_true(value: Data) -> bool:
    """Return the truth of a value. The text "false" in any case, and a text of spaces, are false."""
    if isinstance(value, str):
        return value.strip().lower() not in ("", "false")
    return value is not MISSING and bool(value)


def as_number(value: Data) -> Decimal | None:
    """Return a number, also from a text ("12.50"). None for all else, for infinity and from 10^40."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return None
    try:
        number = Decimal(value if isinstance(value, int) else str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number) < LARGEST else None


def from_number(number: Decimal) -> int | float:
    """Return an int if the number is whole, otherwise a float."""
    return int(number) if number == number.to_integral_value() else float(number)


def rounded(number: Decimal, places: int) -> str:
    """Return a number with exactly so many decimals, half away from zero: 2.675 is 2.68."""
    return f"{number.quantize(Decimal(1).scaleb(-places), context=ARITHMETIC):f}"


def as_moment(value: Data, zone: tzinfo | None) -> datetime | None:
    """Return a moment from ISO 8601, `25.12.2024[ 15:30]`, seconds since 1970, a date or a datetime; None for all else.

    It is converted to `zone` if it has a zone of its own; seconds without `zone` are in UTC.
    """
    number = as_number(value)
    try:
        moment = datetime.fromtimestamp(float(number), UTC) if number is not None else _written(value)
        return moment.astimezone(zone) if moment and moment.tzinfo and zone else moment
    except (ValueError, OverflowError, OSError):
        return None


def in_utc(value: Data, zone: tzinfo | None, now: datetime | None = None) -> datetime | None:
    """Return the same in UTC (`core.model.clock.to_utc`). A moment without a zone is in `zone`, or in UTC."""
    moment = as_moment(value, zone)
    try:
        return to_utc(moment, zone or UTC, now) if moment else None
    except OverflowError:
        return None


def _written(value: Data) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    return _parsed(value.strip()) if isinstance(value, str) else None


def _parsed(text: str) -> datetime:
    """Read a value written as a text. Raises ValueError if the text has none of the forms."""
    for form in _WRITTEN:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 - a time on the wall clock, as the author wrote it
        except ValueError:
            continue
    return datetime.fromisoformat(text)


_INDEX = re.compile(r"\[\s*(-?\d+)\s*\]", re.ASCII)


def find(values: Mapping[str, Data], path: str) -> Data:
    """Return the value at a path, or MISSING. A field whose name is the whole path comes first."""
    if path in values:
        return values[path]
    found: Data = values
    for name in names_in(path):
        found = _enter(found, name)
        if found is MISSING:
            return MISSING
    return found


def names_in(path: str) -> list[str]:
    """Return the names of a path, from the outside in: `items[-1].n` has `items`, `-1` and `n`."""
    return _INDEX.sub(r".\1", path).split(".")


def starts_in(path: str, fields: Container[str]) -> bool:
    """Return whether a path, or the field in which it starts, is one of `fields`: `info.text` is, if `info` is."""
    if path in fields:
        return True
    names = names_in(path)
    return any(".".join(names[:length]) in fields for length in range(1, len(names)))


def _enter(value: Data, name: str) -> Data:
    if isinstance(value, Mapping):
        return value.get(name, MISSING)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return _element(value, name)
    return MISSING


def _element(values: Sequence[Data], name: str) -> Data:
    """Return the element at an index; -1 is the last."""
    digits = name.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return MISSING
    index = int(name)
    return values[index] if -len(values) <= index < len(values) else MISSING
