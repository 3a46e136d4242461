"""Times: aware datetimes in Python, Unix milliseconds in Redis."""

from datetime import UTC, datetime, timedelta, tzinfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MINUTE = timedelta(minutes=1)


def from_ms(ms: int | float | str) -> datetime:
    """Return Unix milliseconds as an aware time."""
    return _EPOCH + int(ms) * _MILLISECOND


def write_time(at: datetime) -> str:
    """Return a time in UTC, as 2026-11-21T14:00:00Z (RFC 3339); with milliseconds if there are any."""
    precision = "milliseconds" if at.microsecond else "seconds"
    return at.astimezone(UTC).isoformat(timespec=precision).removesuffix("+00:00") + "Z"


def write_optional_time(at: datetime | None) -> str | None:
    """Return a time as a text; None for what has not happened yet."""
    return None if at is None else write_time(at)


def local_time(ms: int) -> str:
    """Return Unix milliseconds to the minute, as the clock of this machine shows them."""
    return from_ms(ms).astimezone().strftime("%Y-%m-%d %H:%M")


def to_ms(at: datetime) -> int:
    """Return an aware time as Unix milliseconds."""
    return round(at.timestamp() * 1000)


def in_ms(duration: timedelta) -> int:
    """Return a duration in milliseconds."""
    return duration // _MILLISECOND


def from_wall(wall: datetime, zone: tzinfo, now: datetime | None = None) -> datetime:
    """Return the moment in UTC at which the clock of a zone shows `wall`, which is naive.

    Of a time that the clock shows twice it is the first moment, or the second one if the first has passed at `now`. Of
    a time that the clock skips it is the first minute after the skip (`is_skipped`).
    """
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first > second:
        return _after_skip(wall, zone, second)
    return first if now is None or first > now else second


def is_skipped(wall: datetime, zone: tzinfo) -> bool:
    """Return whether the clock of a zone never shows `wall`, because it is put forward over it."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return first > second


def _after_skip(wall: datetime, zone: tzinfo, before: datetime) -> datetime:
    """Return the first minute from `before` at which the clock shows `wall` or later."""
    moment = before.replace(second=0, microsecond=0)
    while moment.astimezone(zone).replace(tzinfo=None) < wall:
        moment += _MINUTE
    return moment
