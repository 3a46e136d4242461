"""The hours in which a person wants to receive messages: `08:00-22:00 Europe/Moscow`. Pure.

With two equal times it is once a day: all that was ordered by then, within half an hour from that time; what is ordered
later waits for the next day. "" is any time.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from core.errors import Invalid

_HOURS = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9]) ([A-Za-z0-9_+/-]{1,64})")
_DAY_MINUTES = 24 * 60
_ONCE_A_DAY_MINUTES = 30


class ReceivingHours(NamedTuple):
    """Wall times in `zone`; `end` is the first moment outside. `is_daily`: once a day, from `begin`."""

    begin: time
    end: time
    zone: ZoneInfo

    @property
    def is_daily(self) -> bool:
        return self.begin == self.end


@lru_cache(maxsize=1024)
def read_hours(text: str) -> ReceivingHours | None:
    """Read the hours of a person; None for any time. Raises Invalid HOURS_MALFORMED."""
    if not text:
        return None
    found = _HOURS.fullmatch(text)
    try:
        if found:
            begin, end = (time(int(found[place]), int(found[place + 1])) for place in (1, 3))
            return ReceivingHours(begin, end, ZoneInfo(found[5]))
    except (ValueError, KeyError, OSError):  # there is no such zone
        pass
    raise Invalid("HOURS_MALFORMED", f"{text!r} is not like 08:00-22:00 Europe/Moscow.", "hours")


def faults_of_hours(text: str) -> Iterator[Invalid]:
    """Emit the fault of the hours of a person."""
    try:
        read_hours(text)
    except Invalid as fault:
        yield fault


def is_once_a_day(text: str) -> bool:
    """Return whether these hours are a time at which a person wants one message a day."""
    hours = read_hours(text)
    return hours is not None and hours.is_daily


def next_opening(text: str, at: datetime, ordered: datetime | None = None) -> datetime | None:
    """Return the next moment at which a person wants messages, in UTC; None if it wants them at `at`. `ordered`: when
    the message was ordered, `at` if None.
    """
    hours = read_hours(text)
    if hours is None:
        return None
    if hours.is_daily and (first := _opening_from(hours, ordered or at)) > at:
        return first
    wall = at.astimezone(hours.zone)
    minute, begin, end = (one.hour * 60 + one.minute for one in (wall, hours.begin, hours.end))
    length = _ONCE_A_DAY_MINUTES if hours.is_daily else (end - begin) % _DAY_MINUTES
    if (minute - begin) % _DAY_MINUTES < length:
        return None
    return _opening_from(hours, at)


def _opening_from(hours: ReceivingHours, at: datetime) -> datetime:
    """Return the first moment, not before `at`, at which the hours begin."""
    wall = at.astimezone(hours.zone)
    day = wall.date() + timedelta(days=wall.time() > hours.begin)
    # A time that the clock skips becomes one behind it, a time that it shows twice the first of the two.
    return datetime.combine(day, hours.begin, hours.zone).astimezone(UTC)
