"""Moments: shifted, put back to the beginning of a period; durations in seconds.

A moment is returned in the form of ISO 8601 that people read, `2024-12-25 15:30:00`, with its offset if it has one.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from scenarios.bot.data import Data
from scenarios.bot.times import read_duration
from scenarios.placeholders.modifiers.table import ModifierError, modifier
from scenarios.placeholders.values import as_moment, as_text
from scenarios.words import sentence

Interval = tuple[int, timedelta, timedelta]
"""Months; days, on the wall clock; hours and less, which pass in reality when the clock is put forward."""

_UNITS: dict[str, Callable[[int], Interval]] = {
    "y|years?": lambda count: (12 * count, timedelta(), timedelta()),
    "mon|months?": lambda count: (count, timedelta(), timedelta()),
    "w|weeks?": lambda count: (0, timedelta(weeks=count), timedelta()),
    "d|days?": lambda count: (0, timedelta(days=count), timedelta()),
    "h|hours?": lambda count: (0, timedelta(), timedelta(hours=count)),
    "m|min|minutes?": lambda count: (0, timedelta(), timedelta(minutes=count)),
    "s|sec|seconds?": lambda count: (0, timedelta(), timedelta(seconds=count)),
}
_PART = re.compile(r"\s*([+-]?)\s*(\d{1,6})\s*([a-z]+)", re.ASCII | re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}|\d{2}\.\d{2}\.\d{4}", re.ASCII)


def interval_from(parameter: Data) -> Interval:
    """Parse `+1 year 2 months`: a sign applies to what follows, until the next one. Raises ModifierError."""
    text = as_text(parameter).strip()
    parts = _PART.findall(text)
    if not text.startswith(("+", "-")) or _PART.sub("", text).strip():
        raise ModifierError(sentence("no_interval", value=text))
    sign, months, days, rest = "", 0, timedelta(), timedelta()
    for written, number, unit in parts:
        sign = written or sign
        found = _unit(unit)(int(sign + number))
        months, days, rest = months + found[0], days + found[1], rest + found[2]
    return months, days, rest


def _unit(name: str) -> Callable[[int], Interval]:
    for names, unit in _UNITS.items():
        if re.fullmatch(names, name, re.IGNORECASE):
            return unit
    raise ModifierError(sentence("no_unit_time_year", name=name))


@modifier("shift", "i", interval_from, zoned=True)
def shift(value: Data, interval: Interval, zone: tzinfo | None) -> str:
    """A moment moved by `i`: `+1 day`, `-2 hours`, `+1 year 2 months`; a sign is needed. Units are year, month, week,
    day, hour, minute and second, also y, mon, w, d, h, min, s. After the last day of a shorter month comes none: 31
    January and a month is the end of February. A day stays a day if it is moved by days.
    """
    months, days, rest = interval
    moved = _moved(_moment(value, zone), lambda moment: _later(_months_later(moment, months) + days, rest))
    is_day = isinstance(value, str) and _DAY.fullmatch(value.strip()) and not rest
    return moved.date().isoformat() if is_day else _shown(moved)


def _moved(moment: datetime, change: Callable[[datetime], datetime]) -> datetime:
    """Return a moved time. Raises ModifierError."""
    try:
        return change(moment)
    except (OverflowError, ValueError):
        raise ModifierError(sentence("date_outside_years")) from None


def _months_later(moment: datetime, months: int) -> datetime:
    years, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=years, month=month + 1, day=min(moment.day, monthrange(years, month + 1)[1]))


def _later(moment: datetime, rest: timedelta) -> datetime:
    return (moment.astimezone(UTC) + rest).astimezone(moment.tzinfo) if moment.tzinfo else moment + rest


@modifier("to_second", zoned=True)
def to_second(value: Data, zone: tzinfo | None) -> str:
    """A moment without parts of a second: `2024-12-25 15:30:45`."""
    return _shown(_moment(value, zone))


@modifier("to_minute", zoned=True)
def to_minute(value: Data, zone: tzinfo | None) -> str:
    """The beginning of its minute: `2024-12-25 15:30:00`."""
    return _shown(_moment(value, zone).replace(second=0))


@modifier("to_hour", zoned=True)
def to_hour(value: Data, zone: tzinfo | None) -> str:
    """The beginning of its hour: `2024-12-25 15:00:00`."""
    return _shown(_moment(value, zone).replace(minute=0, second=0))


@modifier("to_date", zoned=True)
def to_date(value: Data, zone: tzinfo | None) -> str:
    """The beginning of its day: `2024-12-25 00:00:00`."""
    return _shown(_day(value, zone))


@modifier("to_week", zoned=True)
def to_week(value: Data, zone: tzinfo | None) -> str:
    """The Monday of its week: `2024-12-23 00:00:00`."""
    return _shown(_moved(_day(value, zone), lambda day: day - timedelta(days=day.weekday())))


@modifier("to_month", zoned=True)
def to_month(value: Data, zone: tzinfo | None) -> str:
    """The first day of its month: `2024-12-01 00:00:00`."""
    return _shown(_day(value, zone).replace(day=1))


@modifier("to_year", zoned=True)
def to_year(value: Data, zone: tzinfo | None) -> str:
    """The first day of its year: `2024-01-01 00:00:00`."""
    return _shown(_day(value, zone).replace(month=1, day=1))


@modifier("seconds")
def seconds(value: Data) -> int:
    """A duration such as `1w 2d 3h 15m 10s` in seconds."""
    found = read_duration(value)
    if found is None:
        raise ModifierError(sentence("no_duration_example_d", value=as_text(value)))
    return int(found.total_seconds())


def _moment(value: Data, zone: tzinfo | None) -> datetime:
    moment = as_moment(value, zone)
    if moment is None:
        raise ModifierError(sentence("not_date", value=as_text(value)))
    return moment


def _day(value: Data, zone: tzinfo | None) -> datetime:
    return _moment(value, zone).replace(hour=0, minute=0, second=0)


def _shown(moment: datetime) -> str:
    return moment.isoformat(" ", "seconds")
