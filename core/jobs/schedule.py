"""When the iterations of a job are due. Pure.

Iterations are due on a grid that begins with the first one, so that they do not drift. Those that fell due while no
process was there, or while one ran longer than the period, are made up for by one (U-04).
"""

from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo

from core.errors import Invalid
from core.model.clock import from_wall

SHORTEST = timedelta(seconds=1)
LONGEST = timedelta(days=366)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DailyWindow:
    """From `begin` to before `end` on the wall clock of the user; it may cross midnight."""

    begin: time
    end: time

    def contains(self, wall: time) -> bool:
        if self.begin <= self.end:
            return self.begin <= wall < self.end
        return wall >= self.begin or wall < self.end


@dataclass(frozen=True, slots=True)
class Schedule:
    """`period`: from the begin of one iteration to that of the next. `window`: iterations begin only in it."""

    period: timedelta
    window: DailyWindow | None = None

    def __post_init__(self) -> None:
        """Check the values. Raises Invalid PERIOD_OUT_OF_RANGE, WINDOW_EMPTY."""
        if not SHORTEST <= self.period <= LONGEST:
            raise Invalid("PERIOD_OUT_OF_RANGE", "A period is from one second to 366 days.", "period")
        if self.window is not None and self.window.begin == self.window.end:
            raise Invalid("WINDOW_EMPTY", "A daily window begins and ends at different times.", "window")

    def next(self, anchor: datetime, begun: datetime, now: datetime, timezone: tzinfo) -> datetime:
        """Return when the next iteration is due: on the grid from `anchor`, after the last one has `begun`.

        If that has passed, it is due at once, and the one after it on the grid again.
        """
        on_grid = anchor + ((begun - anchor) // self.period + 1) * self.period
        return self.in_window(max(on_grid, now), timezone)

    def in_window(self, at: datetime, timezone: tzinfo) -> datetime:
        """Return when an iteration may begin: at this time, or when the window opens after it."""
        wall = at.astimezone(timezone)
        if self.window is None or self.window.contains(wall.time()):
            return at
        today = datetime.combine(wall.date(), self.window.begin)
        opening = from_wall(today, timezone, at)
        return opening if opening > at else from_wall(today + _DAY, timezone)
