"""Writes times in responses: RFC 3339 in UTC."""

from datetime import UTC, datetime


def write_time(at: datetime) -> str:
    """Return a time in UTC, as 2026-11-21T14:00:00Z; with milliseconds if there are any."""
    precision = "milliseconds" if at.microsecond else "seconds"
    return at.astimezone(UTC).isoformat(timespec=precision).removesuffix("+00:00") + "Z"


def write_optional_time(at: datetime | None) -> str | None:
    """Return a time; None for what has not happened yet."""
    return None if at is None else write_time(at)
