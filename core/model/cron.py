"""Cron expressions: minute, hour, day of the month, month, day of the week. Pure.

    0 9 * * mon-fri     on working days at 9:00
    */15 8-18 * * *     every quarter of an hour from 8:00 to 18:45
    0 0 1,15 * *        on the 1st and the 15th

As in cron: 0 and 7 are Sunday, also at the end of fri-sun, and if both days are given, one of them is enough. A time
that the clock of a zone skips comes in the first minute after the skip; one that it shows twice comes once.
"""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo

from core.errors import Invalid
from core.model.clock import from_wall

_MONTHS = {name: n for n, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}  # noqa: SIM905
_WEEK = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_DAYS = {name: n for n, day in enumerate(_WEEK) for name in (day, day[:3])}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_YEARS = 40
"""The longest time between two moments: a 29 February on one day of the week, over the year 2100."""

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class CronExpression:
    """An expression that was checked. Each field: the values at which it holds."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    @classmethod
    def parse(cls, text: str) -> "CronExpression":
        """Read an expression of five fields. Raises Invalid CRON_MALFORMED, also for one that never holds."""
        words = text.lower().split()
        if len(words) != len(_FIELDS):
            raise _malformed(text, "it has five fields: minute, hour, day of the month, month, day of the week")
        minutes, hours, days, months, weekdays = (
            frozenset(_values(text, word, *field)) for word, field in zip(words, _FIELDS, strict=True)
        )
        either = not words[2].startswith("*") and not words[4].startswith("*")
        cron = cls(minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either)
        if not either and not any(min(days) <= monthrange(2024, month)[1] for month in months):
            raise _malformed(text, "its months have no such day")
        return cron

    def next(self, after: datetime, zone: tzinfo) -> datetime:
        """Return the first moment after `after` at which the clock of the zone shows a time of the expression."""
        day = after.astimezone(zone).date()
        for _ in range(_YEARS * 366):
            if self._holds_on(day):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        moment = from_wall(datetime.combine(day, time(hour, minute)), zone)
                        if moment > after:
                            return moment
            day += _DAY
        raise AssertionError("an expression that was checked holds within forty years")

    def _holds_on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.either_day else of_month and of_week


_WORDS = re.compile(r"(?:every|each|кажд(?:ый|ую|ое|ые)|по|во?|on)?\s*(.+?)[\s,]+(?:at|во?)?\s*(\d{1,2})[:.](\d{2})")
_NAMED_DAYS = {
    "1": ("monday", "понедельник"),
    "2": ("tuesday", "вторник"),
    "3": ("wednesday", "сред"),
    "4": ("thursday", "четверг"),
    "5": ("friday", "пятниц"),
    "6": ("saturday", "суббот"),
    "7": ("sunday", "воскресен"),
    "1-5": ("weekday", "будн"),
    "6,7": ("weekend", "выходн"),
    "*": ("day", "daily", "день", "дня", "ежедневно"),
}


def cron_of(words: str) -> str:
    """Return the cron expression of a time in words: "every Monday 8:00", "по будням в 9:00", "daily at 18:30". An
    expression stays as it is. Raises Invalid SCHEDULE_MALFORMED.
    """
    text = " ".join(words.lower().replace("ё", "е").split())
    if len(text.split()) == len(_FIELDS) and text[0] in "*0123456789":
        CronExpression.parse(text)
        return text
    found = _WORDS.fullmatch(text)
    days = [_named_day(one) for one in re.split(r"\s*,\s*|\s+(?:and|и)\s+", found[1])] if found else []
    if not found or None in days or int(found[2]) > 23 or int(found[3]) > 59:
        detail = f"{words!r} is no time that recurs, such as every Monday 8:00, weekdays 9:00 or 0 8 * * 1."
        raise Invalid("SCHEDULE_MALFORMED", detail, "when")
    every = "*" if "*" in days else ",".join(day for day in days if day)
    return f"{int(found[3])} {int(found[2])} * * {every}"


def _named_day(word: str) -> str | None:
    """Return the days of the week that a word means; English ones also short or in the plural, Russian ones by their
    stem.
    """
    for days, names in _NAMED_DAYS.items():
        english, *others = names
        if word in (english, f"{english}s", english[:3]) or word.startswith(others[-1]) or word in others:
            return days
    return None


def _values(text: str, word: str, name: str, least: int, most: int, names: dict[str, int]) -> list[int]:
    """Return the values of one field. Raises Invalid CRON_MALFORMED."""
    found: list[int] = []
    for part in word.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        begin = least if span == "*" else _number(first, names)
        end = most if span == "*" or (slash and not dash) else _number(last if dash else first, names)
        if names is _DAYS and begin and end == 0:
            end = 7
        stride = _number(step, {}) if slash else 1
        if begin is None or end is None or not stride or not least <= begin <= end <= most:
            raise _malformed(
                text, f"{part!r} is no {name}: {least} to {most}, for example {least}-{most}, */2 or {least},{most}"
            )
        found += range(begin, end + 1, stride)
    return found


def _number(text: str, names: dict[str, int]) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 4 else names.get(text)


def _malformed(text: str, why: str) -> Invalid:
    return Invalid("CRON_MALFORMED", f"{text!r} is no cron expression: {why}.", "cron")
