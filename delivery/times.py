"""Times at the edge: RFC 3339 with a zone, in and out."""

import re
import time
from datetime import UTC, datetime, timedelta

from msgspec import to_builtins

from delivery.problems import fault

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII)
_EARLIEST = 86_400  # Unix seconds: a day of room for zones
_MICROSECOND = timedelta.resolution


def read_time(text: str, path: str, furthest: timedelta) -> datetime:
    """The moment in UTC, to milliseconds, which is what the house keeps. Raises `Faulty` TIME_…"""
    at = _aware(text, path)
    if not _EARLIEST <= at.timestamp() <= time.time() + furthest.total_seconds():
        raise fault(path, "TIME_OUT_OF_RANGE", f"A time from 1970 to {furthest.days} days from now is wanted.")
    return (at - at.microsecond % 1000 * _MICROSECOND).astimezone(UTC)


def _aware(text: str, path: str) -> datetime:
    found = _RFC3339.fullmatch(text)
    if not found:
        raise fault(path, "TIME_MALFORMED", "A time looks like 2026-11-21T17:00:00+03:00.")
    if not found[3]:
        raise fault(path, "TIME_WITHOUT_ZONE", "A time ends with its zone: Z or +03:00.")
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError as wrong:
        raise fault(path, "TIME_MALFORMED", f"There is no such time: {wrong}.") from None


def tell_time(at: datetime) -> str:
    """In UTC, as 2026-11-21T14:00:00Z; milliseconds where there are any."""
    text: str = to_builtins(at.astimezone(UTC))  # as msgspec writes it in JSON: a tenth of what `isoformat` costs
    return f"{text[:-4]}Z" if at.microsecond else text  # the house has no more than milliseconds


def told(at: datetime | None) -> str | None:
    """The same for what may not have happened yet."""
    return None if at is None else tell_time(at)
