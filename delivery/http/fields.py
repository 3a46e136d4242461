"""The form of single fields in requests and responses: their types, times with a zone, durations (ISO 8601).

Decoding, validation and the OpenAPI document use the types. An optional field is `… | UnsetType`, so null differs from
a field that was not sent. `extra` of a bound names the code of its error, where the general code would say too little.
"""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import Invalid
from core.model.field_types import whole
from core.model.people import EMAIL
from core.model.text import characters

T = TypeVar("T")

_DATE = (
    r"((?!1970-01-0[12])(19[7-9][0-9]|20[0-9]{2})-"
    r"((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[469]|11)-(29|30)|(0[13578]|1[02])-(29|3[01]))"
    r"|(19(7[26]|8[048]|9[26])|20([02468][048]|[13579][26]))-02-29)"
)
"""From the second of January 1970, with which every zone is behind the epoch, to a year that is far enough."""
_TIME_OF_DAY = r"([01][0-9]|2[0-3]):[0-5][0-9](:([0-5][0-9]|60)(\.[0-9]+)?)?"
_ZONE = r"([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])"
DELIVERY_ID = whole(r"(history:\{[0-9]{1,5}\}:.+:[0-9]{19}|[0-9]{1,5}\..+\.[0-9]{19})")
"""A history key, or the id of a delivery."""

Time = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        description="RFC 3339, with a zone",
        extra_json_schema={"pattern": rf"^{_DATE}[Tt ]{_TIME_OF_DAY}{_ZONE}$"},
    ),
]
Email = Annotated[str, Meta(min_length=1, max_length=254, extra_json_schema={"pattern": f"^(?=[^@]{{1,64}}@){EMAIL}$"})]


def cursor_form(form: str) -> Meta:
    return Meta(min_length=1, max_length=4096, pattern=whole(form), extra={"pattern": "CURSOR_MALFORMED"})


_MORE = "~[89AB][0-9A-F]"
_CHARACTER = "|".join(  # as `characters.to_unreserved` writes it, which is UTF-8
    (
        "[A-Za-z0-9_.-]",
        "~(2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-E])",
        f"~(C[2-9A-F]|D[0-9A-F]){_MORE}",
        f"~(E0~[AB][0-9A-F]|E[1-9A-CEF]{_MORE}|ED~[89][0-9A-F]){_MORE}",
        f"~(F0~[9AB][0-9A-F]|F[123]{_MORE}|F4~8[0-9A-F]){_MORE}{_MORE}",
    )
)
Cursor = Annotated[str, cursor_form(f"({_CHARACTER})+")]
TaskCursor = Annotated[str, cursor_form(f"[0-9]{{1,5}}-[0-9]{{1,16}}-{characters.ONE}*")]


class RequestModel(Struct, forbid_unknown_fields=True, frozen=True):
    """Base of bodies and queries: unknown fields are refused."""


def sent_fields(body: Struct) -> dict[str, Any]:
    fields = {name: getattr(body, name) for name in body.__struct_fields__}
    return {name: value for name, value in fields.items() if value is not UNSET}


def optional(value: T | UnsetType) -> T | None:
    """Return a parameter; None if it was not sent."""
    return None if isinstance(value, UnsetType) else value


PAGE = 100
"""Items of a page whose `limit` is not given."""

Limit = Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})]


class PageQuery(RequestModel, frozen=True):
    """The page of a list."""

    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d [Tt\ ] \d\d:\d\d (:((?P<leap>60)|\d\d) (\.\d+)?)? (?P<zone> [Zz] | [+-]\d\d:?\d\d)?",
    re.ASCII | re.VERBOSE,
)
_DAY = 86_400
_EARLIEST = _DAY  # Unix seconds: one day of room for time zones


def read_time(text: str, path: str, max_days_ahead: int) -> datetime:
    """Return the time in UTC, cut to milliseconds, which is the precision of core. Raises Invalid TIME_…"""
    at = _parse_time(text, path)
    if not _EARLIEST <= at.timestamp() <= time.time() + max_days_ahead * _DAY:
        raise Invalid("TIME_OUT_OF_RANGE", f"The time must lie between 1970 and {max_days_ahead} days from now.", path)
    return at.astimezone(UTC) - timedelta(microseconds=at.microsecond % 1000)


def _parse_time(text: str, path: str) -> datetime:
    shape = _RFC3339.fullmatch(text)
    if shape is None:
        raise Invalid("TIME_MALFORMED", "A time looks like 2026-11-21T17:00:00+03:00.", path)
    if shape["zone"] is None:
        raise Invalid("TIME_WITHOUT_ZONE", "A time ends with its zone: Z or +03:00.", path)
    try:
        if shape["leap"]:  # RFC 3339, section 5.6: 23:59:60 is the second before the next day
            start, end = shape.span("leap")
            return datetime.fromisoformat(f"{text[:start]}59{text[end:]}".upper()) + timedelta(seconds=1)
        return datetime.fromisoformat(text.upper())
    except ValueError:
        raise Invalid("TIME_MALFORMED", "There is no such day or time of day.", path) from None


_DURATION = re.compile(
    r"P(?=[0-9T])(?:(?P<weeks>\d{1,8})W)?(?:(?P<days>\d{1,8})D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:[.,]\d{1,3})?)S)?)?",
    re.ASCII,
)
DURATION = (
    r"P(?=[0-9T])([0-9]{1,8}W)?([0-9]{1,8}D)?(T(?=[0-9])([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,9}([.,][0-9]{1,3})?S)?)?"
)
"""The same form in the dialect of JSON Schema."""


def read_duration(text: str) -> timedelta | None:
    """Return the duration, None if the text is not one. Precision: milliseconds."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    return timedelta(**{unit: float(number.replace(",", ".")) for unit, number in found.groupdict(default="0").items()})


def write_duration(duration: timedelta) -> str:
    """Return a duration in seconds and the larger units: PT2M, P1DT1H, PT0.5S."""
    hours, rest = divmod(duration - timedelta(days=duration.days), timedelta(hours=1))
    minutes, seconds = divmod(rest, timedelta(minutes=1))
    parts = ((hours, "H"), (minutes, "M"), (seconds / timedelta(seconds=1), "S"))
    time = "".join(f"{number:g}{unit}" for number, unit in parts if number)
    days = f"{duration.days}D" if duration.days else ""
    return f"P{days}T{time}" if time else f"P{days or 'T0S'}"
