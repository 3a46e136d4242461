"""When the iterations of a job are due. Pure.

Iterations are due on a grid that begins with the first one, so that they do not drift. Those that fell due while no
process was there, or while one ran longer than the period, are made up for by one (U-04).
"""

from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo

from msgspec import Struct

from core.errors import Invalid
from core.model.clock import from_wall
from core.model.cron import CronExpression
from core.queue.checks import check_spans

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
    """`period`: from the begin of one iteration to that of the next; `cron`: the times on the wall clock of the user at
    which they begin, as `core.model.cron`; neither: there is one iteration. `window`: iterations begin only in it.
    """

    period: timedelta | None = None
    window: DailyWindow | None = None
    cron: str = ""

    def __post_init__(self) -> None:
        """Check the values. Raises TypeError; Invalid PERIOD_OUT_OF_RANGE, WINDOW_EMPTY, CRON_MALFORMED,
        SCHEDULE_AMBIGUOUS.
        """
        check_spans("schedule", period=self.period)
        if self.period is not None and not SHORTEST <= self.period <= LONGEST:
            raise Invalid("PERIOD_OUT_OF_RANGE", "A period is from one second to 366 days.", "period")
        if self.window is not None and self.window.begin == self.window.end:
            raise Invalid("WINDOW_EMPTY", "A daily window begins and ends at different times.", "window")
        if self.cron and self.period is not None:
            raise Invalid("SCHEDULE_AMBIGUOUS", "A schedule has a period or a cron expression, and not both.", "cron")
        if self.cron:
            CronExpression.parse(self.cron)

    @property
    def is_once(self) -> bool:
        """Return whether a job has one iteration, with which it ends."""
        return self.period is None and not self.cron

    def first(self, now: datetime, timezone: tzinfo) -> datetime:
        """Return when the first iteration of a job that is started now is due."""
        return self.in_window(CronExpression.parse(self.cron).next(now, timezone) if self.cron else now, timezone)

    def next(self, anchor: datetime, begun: datetime, now: datetime, timezone: tzinfo) -> datetime:
        """Return when the next iteration is due: on the grid from `anchor`, or by the cron expression, after the last
        one has `begun`. If that has passed, it is due at once, and the one after it on the grid again.
        """
        if self.period is not None:
            following = anchor + ((begun - anchor) // self.period + 1) * self.period
        else:
            following = CronExpression.parse(self.cron).next(begun, timezone) if self.cron else now
        return self.in_window(max(following, now), timezone)

    def in_window(self, at: datetime, timezone: tzinfo) -> datetime:
        """Return when an iteration may begin: at this time, or when the window opens after it."""
        wall = at.astimezone(timezone)
        if self.window is None or self.window.contains(wall.time()):
            return at
        today = datetime.combine(wall.date(), self.window.begin)
        opening = from_wall(today, timezone, at)
        return opening if opening > at else from_wall(today + _DAY, timezone)


class StoredSchedule(Struct, frozen=True, omit_defaults=True):
    """A schedule as JSON. `seconds`: the period, 0 for none."""

    seconds: float = 0
    begin: time | None = None
    end: time | None = None
    cron: str = ""

    @classmethod
    def of(cls, schedule: Schedule) -> "StoredSchedule":
        window, period = schedule.window, schedule.period
        begin, end = (window.begin, window.end) if window else (None, None)
        return cls(period.total_seconds() if period else 0, begin, end, schedule.cron)

    @property
    def schedule(self) -> Schedule:
        """Return the schedule. Raises as `Schedule`."""
        window = DailyWindow(self.begin, self.end) if self.begin is not None and self.end is not None else None
        return Schedule(timedelta(seconds=self.seconds) if self.seconds else None, window, self.cron)
