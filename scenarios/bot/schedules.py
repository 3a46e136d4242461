"""When a bot does something by itself (C-96): cron or words such as `Monday 8:00`, or so long before a date. Pure."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from msgspec import Struct

from core.model.clock import from_wall
from scenarios.bot.place import Place
from scenarios.words import Told, sentence

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = {"day": "*", "weekday": "1-5", "weekdays": "1-5", "weekend": "6,7"}
_WORDS = re.compile(r"(?:each\s+|every\s+)?([a-z]+(?:\s*,\s*[a-z]+)*)\s+(\d{1,2}):(\d{2})")
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_LONGEST = 366 * 8
"""Days that are searched for the next moment: 29 February may be eight years away."""

PEOPLE = "people"
DAY = timedelta(days=1)


class ScheduleFault(Told):
    """The words are no time that recurs."""


class Cron(Struct, frozen=True):
    """Minutes, hours, days of the month, months and days of the week (1 is Monday). `days`, `weekdays`: None for any;
    if both are given, either is enough.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...] | None
    months: tuple[int, ...]
    weekdays: tuple[int, ...] | None

    def after(self, moment: datetime, zone: tzinfo) -> datetime | None:
        """Return the first moment in UTC after this one; None if there is none in eight years."""
        today = moment.astimezone(zone).date()
        for number in range(_LONGEST):
            if self._has(day := today + number * DAY):
                for wall in self._times(day):
                    if (found := from_wall(wall, zone)) > moment:
                        return found
        return None

    def _has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        of_month = self.days is None or day.day in self.days
        of_week = self.weekdays is None or day.isoweekday() in self.weekdays
        either = self.days is not None and self.weekdays is not None
        return of_month or of_week if either else of_month and of_week

    def _times(self, day: date) -> Iterator[datetime]:
        for hour in self.hours:
            yield from (datetime.combine(day, time(hour, minute)) for minute in self.minutes)


class Schedule(Struct, frozen=True):
    """One entry of schedule.yaml. Either `cron`, or `before`: a date variable, `by` seconds before it, at `time` of
    that day if it is given (minutes). `target`: `people`, `{group: …}`, `{chat: …, channel: …}` or None, which is once.
    `when`: the condition under which it starts. `words`: the time as written.
    `late`: whether a person is due whose date was set after that time, but is still to come.
    """

    name: str
    scenario: str
    place: Place
    words: str
    cron: Cron | None = None
    before: str = ""
    by: int = 0
    time: int | None = None
    target: Any = None
    when: Mapping[str, Any] | None = None
    late: bool = True

    def moment_before(self, value: datetime, zone: tzinfo) -> datetime:
        """Return when a person is due whose variable has this value. A value without a zone is in `zone`."""
        wall = value.astimezone(zone).replace(tzinfo=None) if value.tzinfo else value
        wall -= timedelta(seconds=self.by)
        if self.time is not None:
            wall = datetime.combine(wall.date(), time(*divmod(self.time, 60)))
        return from_wall(wall, zone).astimezone(UTC)


def read_time(text: str) -> Cron:
    """Return a time that recurs: `Monday 8:00`, `each day 18:30`, `weekdays 9:00`, or five fields of cron. Raises
    ScheduleFault.
    """
    words = " ".join(text.lower().split())
    if found := _WORDS.fullmatch(words):
        days = ",".join(_day(one.strip()) for one in found[1].split(","))
        words = f"{int(found[3])} {int(found[2])} * * {days}"
    fields = words.split()
    if len(fields) != 5:
        raise ScheduleFault(sentence("no_time_such_monday", value=text))
    minutes, hours, days_, months, weekdays = (
        _numbers(field, bounds) for field, bounds in zip(fields, _RANGES, strict=True)
    )
    week = tuple(sorted({one or 7 for one in weekdays}))
    return Cron(minutes, hours, None if fields[2] == "*" else days_, months, None if fields[4] == "*" else week)


def read_clock(text: str) -> int:
    """Return a time of day, such as 10:00, in minutes. Raises ScheduleFault."""
    found = re.fullmatch(r"(\d{1,2}):(\d{2})", text.strip())
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise ScheduleFault(sentence("no_time_day_such", value=text))
    return int(found[1]) * 60 + int(found[2])


def _day(word: str) -> str:
    if word in _DAYS:
        return _DAYS[word]
    if (number := _named(word, WEEKDAYS)) is None:
        raise ScheduleFault(sentence("no_day_such_monday", value=word))
    return str(number)


def _named(word: str, names: tuple[str, ...]) -> int | None:
    short = [name[:3] for name in names]
    return short.index(word[:3]) + 1 if word in names or word in short else None


def _numbers(field: str, bounds: tuple[int, int]) -> tuple[int, ...]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        low = bounds[0] if span == "*" else _number(first, bounds)
        high = bounds[1] if span == "*" or (step and not last) else _number(last or first, bounds)
        if step and not (step.isascii() and step.isdigit() and int(step)):
            raise ScheduleFault(sentence("has_no_step_such", value=part))
        found |= set(range(low, high + 1, int(step or 1)))
    if not found:
        raise ScheduleFault(sentence("names_no_time", value=field))
    return tuple(sorted(found))


def _number(word: str, bounds: tuple[int, int]) -> int:
    names = _MONTHS if bounds == _RANGES[3] else WEEKDAYS if bounds == _RANGES[4] else ()
    number = int(word) if word.isascii() and word.isdigit() and len(word) < 4 else _named(word, names)
    if number is None or not bounds[0] <= number <= bounds[1]:
        raise ScheduleFault(sentence("not_between", value=word, least=bounds[0], most=bounds[1]))
    return number
