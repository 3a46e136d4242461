"""The times of a delivery: as a person types one, and the mistakes: passed, or far ahead (D-51). Pure."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo

from msgspec import Struct

from core.directory.records import raise_first
from core.errors import Invalid
from core.model.clock import from_wall, is_skipped

PAST = timedelta(minutes=5)
"""The greatest age of a time: clocks differ, and a call takes a while."""
FAR = timedelta(days=366)
_CLOCK = r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})"
_DATE = r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})(?:\.(?P<year>\d{4}))?"
_TYPED = re.compile(rf"(?:(?:{_DATE}|(?P<tomorrow>завтра|tomorrow))\s+(?:в\s+|at\s+)?)?{_CLOCK}", re.IGNORECASE)
_DAY = timedelta(days=1)


def check_time(requested: datetime | None, now: datetime, *, is_far: bool) -> None:
    """Check a requested time. Raises Invalid DELIVER_AT_PAST, DELIVER_AT_FAR."""
    raise_first(faults_of_time(requested, now, is_far=is_far))


def faults_of_time(requested: datetime | None, now: datetime, *, is_far: bool) -> Iterator[Invalid]:
    """Emit the faults of a requested time: DELIVER_AT_PAST, DELIVER_AT_FAR. `is_far`: the caller knows that it is far
    ahead.
    """
    if requested is None:
        return
    if requested < now - PAST:
        detail = f"{requested:%FT%TZ} has passed; it is {now:%FT%TZ}. Without a time a delivery is sent at once."
        yield Invalid("DELIVER_AT_PAST", detail, "deliver_at")
    if requested > now + FAR and not is_far:
        detail = f"{requested:%FT%TZ} is more than a year ahead. If that is meant, set far to true."
        yield Invalid("DELIVER_AT_FAR", detail, "deliver_at")


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
