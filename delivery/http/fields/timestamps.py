"""Reads times in requests: RFC 3339 with a zone."""

import re
import time
from datetime import UTC, datetime, timedelta

from delivery.http.responses.problems import invalid_field

_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d [Tt\ ] \d\d:\d\d (:((?P<leap>60)|\d\d) (\.\d+)?)? (?P<zone> [Zz] | [+-]\d\d:?\d\d)?",
    re.ASCII | re.VERBOSE,
)
_DAY = 86_400
_EARLIEST = _DAY  # Unix seconds: one day of room for time zones


def read_time(text: str, path: str, max_days_ahead: int) -> datetime:
    """Return the time in UTC, cut to milliseconds, which is the precision of core. Raises `InvalidFields` TIME_…"""
    at = _parse(text, path)
    if not _EARLIEST <= at.timestamp() <= time.time() + max_days_ahead * _DAY:
        raise invalid_field(
            path, "TIME_OUT_OF_RANGE", f"The time must lie between 1970 and {max_days_ahead} days from now."
        )
    return at.astimezone(UTC) - timedelta(microseconds=at.microsecond % 1000)


def _parse(text: str, path: str) -> datetime:
    shape = _RFC3339.fullmatch(text)
    if shape is None:
        raise invalid_field(path, "TIME_MALFORMED", "A time looks like 2026-11-21T17:00:00+03:00.")
    if shape["zone"] is None:
        raise invalid_field(path, "TIME_WITHOUT_ZONE", "A time ends with its zone: Z or +03:00.")
    try:
        if shape["leap"]:  # RFC 3339, section 5.6: 23:59:60 is the second before the next day
            start, end = shape.span("leap")
            return datetime.fromisoformat(f"{text[:start]}59{text[end:]}".upper()) + timedelta(seconds=1)
        return datetime.fromisoformat(text.upper())
    except ValueError:
        raise invalid_field(path, "TIME_MALFORMED", "There is no such day or time of day.") from None
