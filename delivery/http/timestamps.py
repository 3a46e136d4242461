"""Times at the edge: RFC 3339 with a zone, in and out."""

import time
from datetime import UTC, datetime, timedelta

from delivery.http.problems import fault

# What RFC 3339 allows, all digits as zeros: seconds may be missing, and have up to nine decimals. Looking the shape up
# costs a tenth of a regular expression, which was the dearest step of reading a time.
_SECONDS = ("", ":00", *(f":00.{'0' * decimals}" for decimals in range(1, 10)))
_ZONES = ("Z", "z", "+00:00", "-00:00", "+0000", "-0000")
_LOCAL = frozenset(f"0000-00-00{t}00:00{seconds}".encode() for t in "Tt " for seconds in _SECONDS)
_ZONED = frozenset(local + zone.encode() for local in _LOCAL for zone in _ZONES)
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_DAY = 86_400
_EARLIEST = _DAY  # Unix seconds: a day of room for zones
_MICROSECOND = timedelta.resolution


def read_time(text: str, path: str, furthest: int) -> datetime:
    """The moment in UTC, to milliseconds, which is what the house keeps; at most `furthest` days from now. Raises
    `Faulty` TIME_…
    """
    at = _aware(text, path)
    if not _EARLIEST <= at.timestamp() <= time.time() + furthest * _DAY:
        raise fault(path, "TIME_OUT_OF_RANGE", f"A time from 1970 to {furthest} days from now is wanted.")
    if finer := at.microsecond % 1000:
        at -= finer * _MICROSECOND
    return at if at.tzinfo is UTC else at.astimezone(UTC)


def _aware(text: str, path: str) -> datetime:
    shape = text.encode("ascii", "replace").translate(_AS_ZEROS)
    if shape in _LOCAL:
        raise fault(path, "TIME_WITHOUT_ZONE", "A time ends with its zone: Z or +03:00.")
    if shape not in _ZONED:
        raise fault(path, "TIME_MALFORMED", "A time looks like 2026-11-21T17:00:00+03:00.")
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError as wrong:
        raise fault(path, "TIME_MALFORMED", f"There is no such time: {wrong}.") from None
