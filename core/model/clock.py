"""Times: aware datetimes in Python, Unix milliseconds in Redis; pauses before another attempt. Pure.

A wait named by the provider is kept to the millisecond. Without one the pause doubles with each attempt; its jitter
keeps messages that were refused together from coming back together.
"""

import random
from dataclasses import dataclass
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


def to_utc(at: datetime, zone: tzinfo, now: datetime | None = None) -> datetime:
    """Return a moment in UTC; one without a zone is what the clock of `zone` shows (`from_wall`)."""
    return at.astimezone(UTC) if at.tzinfo else from_wall(at, zone, now)


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


@dataclass(frozen=True, slots=True)
class Backoff:
    """`attempts`: how many are made in all if the provider names no wait."""

    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=5)
    attempts: int = 8

    def pause(self, attempt: int, jitter: float | None = None) -> timedelta:
        """Return the pause after the `attempt`-th attempt (from 1): between half and the whole of first ×
        2^(attempt-1), at most `longest`. `jitter`: from 0 (half) to 1 (whole); None: random.
        """
        whole: timedelta = min(self.longest, self.first * 2 ** min(attempt - 1, 20))
        return whole * (0.5 + (random.random() if jitter is None else jitter) / 2)

    def spent(self, attempt: int) -> bool:
        """Return whether the `attempt`-th attempt was the last."""
        return attempt >= self.attempts
