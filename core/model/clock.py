"""Times: aware datetimes in Python, Unix milliseconds in Redis."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def from_ms(ms: int | float | str) -> datetime:
    """Unix milliseconds as an aware time."""
    return _EPOCH + int(ms) * _MILLISECOND


def to_ms(at: datetime) -> int:
    """An aware time as Unix milliseconds."""
    return round(at.timestamp() * 1000)


def in_ms(duration: timedelta) -> int:
    """A duration in milliseconds."""
    return duration // _MILLISECOND
