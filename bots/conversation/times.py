"""The delivery time as a person types it. Pure."""

import re
from datetime import UTC, datetime, timedelta, tzinfo

TOMORROW_AT = 9

_CLOCK = r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})"
_DATE = r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})(?:\.(?P<year>\d{4}))?"
_TYPED = re.compile(rf"(?:(?:{_DATE}|(?P<tomorrow>завтра|tomorrow))\s+(?:в\s+|at\s+)?)?{_CLOCK}", re.IGNORECASE)


class TimePassed(ValueError):
    """The typed time is in the past."""


def tomorrow_morning(now: datetime, timezone: tzinfo) -> datetime:
    """Tomorrow at 9 o'clock in a time zone, in UTC."""
    wall = now.astimezone(timezone) + timedelta(days=1)
    return wall.replace(hour=TOMORROW_AT, minute=0, second=0, microsecond=0).astimezone(UTC)


def read_time(typed: str, now: datetime, timezone: tzinfo) -> datetime | None:
    """The moment of `14:30`, `tomorrow 9:00`, `25.11 14:30` or `25.11.2026 14:30` in a time zone, in UTC; None if it is
    none of these. A clock time alone is the next such moment. Raises TimePassed.
    """
    found = _TYPED.fullmatch(typed.strip())
    if found is None:
        return None
    wall = now.astimezone(timezone)
    day = wall + timedelta(days=1) if found["tomorrow"] else wall
    try:
        local = _on_date(day, found).replace(
            hour=int(found["hour"]), minute=int(found["minute"]), second=0, microsecond=0, fold=0
        )
    except ValueError:
        return None
    if local <= wall and not found["day"]:
        local += timedelta(days=1)
    if local <= wall:
        raise TimePassed
    return local.astimezone(UTC)


def _on_date(day: datetime, found: re.Match[str]) -> datetime:
    """`day`, or the typed date. Raises ValueError for a date that does not exist."""
    if not found["day"]:
        return day
    return day.replace(year=int(found["year"] or day.year), month=int(found["month"]), day=int(found["day"]))
