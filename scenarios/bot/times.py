"""Durations and times as bot authors write them. Pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta, tzinfo

from msgspec import Struct

from core.errors import Invalid
from core.model.clock import from_wall
from core.model.cron import CronExpression, cron_of
from core.model.json_form import JsonObject, JsonValue
from scenarios.bot.data import Data, Place
from scenarios.words import SentenceError, sentence

NAMES = ("expire", "unexpired", "duration")
"""The attributes of any action that are durations."""

SECONDS = "_seconds"

_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_SIZES = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_PART = re.compile(r"(\d{1,9})\s*([wdhms])", re.ASCII)
_WHOLE = re.compile(r"\s*((\d{1,9}\s*[wdhms]\s*)+|\d{1,9}\s*)", re.ASCII)


def read_duration(value: Data) -> timedelta | None:
    """Return the duration, None if the value is none. A number is one of seconds."""
    text = str(value).lower()
    if isinstance(value, bool) or not _WHOLE.fullmatch(text):
        return None
    if text.strip().isdigit():
        return timedelta(seconds=int(text))
    try:
        return sum((timedelta(**{_UNITS[unit]: int(number)}) for number, unit in _PART.findall(text)), timedelta())
    except OverflowError:
        return None


def as_written(duration: timedelta) -> str:
    """Return a duration as authors write it, in the largest unit of which it is a whole number."""
    seconds = int(duration.total_seconds())
    size, unit = next((size, unit) for size, unit in _SIZES if seconds % size == 0)
    return f"{seconds // size}{unit}"


def with_seconds(attributes: Mapping[str, Data]) -> dict[str, Data]:
    """Return the attributes, and for each duration among them the same in seconds: `expire` also gives
    `expire_seconds`."""
    found = {name: read_duration(attributes[name]) for name in NAMES if name in attributes}
    seconds = {f"{name}{SECONDS}": int(value.total_seconds()) for name, value in found.items() if value is not None}
    return {**seconds, **attributes}


PEOPLE = "people"


class ScheduleFault(SentenceError):
    """The words are no time that recurs."""


class Schedule(Struct, frozen=True):
    """One entry of schedule.yaml. Either `recurs`, a cron expression, or `before`: a date variable, `by` seconds before
    it, at `time` of that day if it is given (minutes). `target`: `people`, `{group: …}`, `{chat: …, channel: …}` or
    None, which is once. `when`: the condition under which it starts. `words`: the time as written. `late`: whether a
    person is due whose date was set after that time, but is still to come.
    """

    name: str
    scenario: str
    place: Place
    words: str
    recurs: str = ""  # stored versions of before have another form of it, `cron`, which is not read
    before: str = ""
    by: int = 0
    time: int | None = None
    target: JsonValue = None
    when: JsonObject | None = None
    late: bool = True

    def moment_after(self, moment: datetime, zone: tzinfo) -> datetime:
        """Return the first moment of `recurs` after another one."""
        return CronExpression.parse(self.recurs).next(moment, zone)

    def moment_before(self, value: datetime, zone: tzinfo) -> datetime:
        """Return when a person is due whose variable has this value. A value without a zone is in `zone`."""
        wall = value.astimezone(zone).replace(tzinfo=None) if value.tzinfo else value
        wall -= timedelta(seconds=self.by)
        if self.time is not None:
            wall = datetime.combine(wall.date(), time(*divmod(self.time, 60)))
        return from_wall(wall, zone).astimezone(UTC)


def read_time(text: str) -> str:
    """Return the cron expression of a time that recurs: `Monday 8:00`, `each day 18:30`, `weekdays 9:00`, or five
    fields of cron. Raises ScheduleFault.
    """
    try:
        cron = cron_of(text)
        CronExpression.parse(cron)
        return cron
    except Invalid:
        raise ScheduleFault(sentence("no_time_such_monday", value=text)) from None


def read_clock(text: str) -> int:
    """Return a time of day, such as 10:00, in minutes. Raises ScheduleFault."""
    found = re.fullmatch(r"(\d{1,2}):(\d{2})", text.strip())
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise ScheduleFault(sentence("no_time_day_such", value=text))
    return int(found[1]) * 60 + int(found[2])
