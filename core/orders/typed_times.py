"""The delivery time as a person types it. Pure."""

import re
from datetime import datetime, timedelta, tzinfo

from msgspec import Struct

from core.model.clock import from_wall, is_skipped

_CLOCK = r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})"
_DATE = r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})(?:\.(?P<year>\d{4}))?"
_TYPED = re.compile(rf"(?:(?:{_DATE}|(?P<tomorrow>завтра|tomorrow))\s+(?:в\s+|at\s+)?)?{_CLOCK}", re.IGNORECASE)
_DAY = timedelta(days=1)


class TimePassed(ValueError):
    """The typed time is in the past."""


class TypedTime(Struct, frozen=True):
    """`at`: in UTC. `skipped`: the typed time of day, if the clock is put forward over it; `at` is the next minute."""

    at: datetime
    skipped: str = ""


def read_time(typed: str, now: datetime, timezone: tzinfo) -> TypedTime | None:
    """Return the moment of `14:30`, `tomorrow 9:00`, `25.11 14:30` or `25.11.2026 14:30` in a time zone; None if it is
    none of these. A clock time alone is the next such moment. Raises TimePassed.
    """
    found = _TYPED.fullmatch(typed.strip())
    if found is None:
        return None
    today = _wall(now, timezone)
    try:
        wall = _on_date(today, found).replace(hour=int(found["hour"]), minute=int(found["minute"]))
        days = [wall] if found["day"] or found["tomorrow"] else [wall, wall + _DAY]
        moments = [(from_wall(day, timezone, now), day) for day in days]
    except (ValueError, OverflowError):
        return None
    at, day = next((moment for moment in moments if moment[0] > now), moments[-1])
    if at <= now:
        raise TimePassed
    return TypedTime(at, f"{day:%H:%M}" if is_skipped(day, timezone) else "")


def _wall(at: datetime, timezone: tzinfo) -> datetime:
    """Return what the clock of a time zone shows, naive, in whole minutes."""
    return at.astimezone(timezone).replace(second=0, microsecond=0, tzinfo=None, fold=0)


def _on_date(today: datetime, found: re.Match[str]) -> datetime:
    """Return the day of a typed time. Raises ValueError for a date that does not exist."""
    if not found["day"]:
        return today + _DAY if found["tomorrow"] else today
    return today.replace(year=int(found["year"] or today.year), month=int(found["month"]), day=int(found["day"]))
