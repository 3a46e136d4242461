"""When a bot does something by itself (C-96): cron or words such as `Monday 8:00`, or so long before a date. Pure."""

import re
from datetime import UTC, datetime, time, timedelta, tzinfo

from msgspec import Struct

from core.errors import Invalid
from core.model.clock import from_wall
from core.model.cron import CronExpression, cron_of
from core.model.json_form import JsonObject, JsonValue
from scenarios.bot.nodes import Place
from scenarios.words import SentenceError, sentence

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
