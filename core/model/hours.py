"""Hours of messages: quiet hours and office hours of a tenant, receiving hours of a person. Pure.

What falls into quiet hours is moved to their end (D-08). What arrives outside office hours is accepted at once, and
shown to people of staff when the next ones begin (R-26).

A person writes the hours in which it wants messages as `08:00-22:00 Europe/Moscow`. With two equal times it is once a
day: all that was ordered by then, within half an hour from that time; what is ordered later waits for the next day. ""
is any time.

Times are compared on the wall clock of a time zone, also in the two nights in which the clock changes.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from core.errors import Invalid

_SPREAD_MS = 359_000
_MINUTE = timedelta(minutes=1)

_WEEK = 7
_HOURS = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9]) ([A-Za-z0-9_+/-]{1,64})")
_DAY_MINUTES = 24 * 60
_ONCE_A_DAY_MINUTES = 30


@dataclass(frozen=True)
class QuietHours:
    """From `begin` to before `end`, on the wall clock of `timezone`. They may cross midnight."""

    begin: time
    end: time
    timezone: tzinfo = UTC

    def contain(self, at: datetime) -> bool:
        wall = at.astimezone(self.timezone).time()
        if self.begin <= self.end:
            return self.begin <= wall < self.end
        return wall >= self.begin or wall < self.end

    def moved(self, at: datetime, spread: timedelta | None = None) -> datetime | None:
        """Return the first moment after these quiet hours plus `spread`, in UTC and never in quiet hours; None if `at`
        is not in them. `spread`: None is random, from 0 to 5 min 59 s, so that what was moved is not all sent at once.
        """
        if not self.contain(at):
            return None
        first = self._end_after(at)
        if spread is None:
            spread = timedelta(milliseconds=random.randint(0, _SPREAD_MS))
        return first if self.contain(first + spread) else first + spread

    def _end_after(self, at: datetime) -> datetime:
        """Return the first moment from `at`, which is in the quiet hours, that is not."""
        wall = at.astimezone(self.timezone)
        day = wall.date() + timedelta(days=wall.time() >= self.end)
        end = datetime.combine(day, self.end)
        # An end that the clock skips or shows twice stands for two moments. From the earlier one, or from now, it is
        # less than two hours to the moment that is searched for.
        moments = [end.replace(tzinfo=self.timezone, fold=fold).astimezone(UTC) for fold in (0, 1)]
        moment = max(min(moments), at.astimezone(UTC).replace(second=0, microsecond=0))
        while self.contain(moment):
            moment += _MINUTE
        return moment


@dataclass(frozen=True)
class TenantQuietHours:
    """The quiet hours of all tenants. `common` None: there are none. `timezones`: those of the tenants that have their
    own; for the others that of `common` holds.
    """

    common: QuietHours | None = None
    timezones: Mapping[str, tzinfo] = field(default_factory=dict)

    def of(self, tenant: str) -> QuietHours | None:
        timezone = self.timezones.get(tenant)
        return replace(self.common, timezone=timezone) if self.common and timezone else self.common


class Opening(NamedTuple):
    """`days`: of the week, 0 for Monday. `begin` is before `end`."""

    days: frozenset[int]
    begin: time
    end: time


@dataclass(frozen=True)
class OfficeHours:
    """Without openings there are no hours: everything is shown at once."""

    openings: Sequence[Opening] = ()
    timezone: tzinfo = UTC

    def next_opening(self, at: datetime) -> datetime | None:
        """Return when the next hours begin, in this time zone; None if a moment is in the hours."""
        wall = at.astimezone(self.timezone)
        if any(wall.weekday() in one.days and one.begin <= wall.time() < one.end for one in self.openings):
            return None
        begins = [
            datetime.combine(wall.date() + timedelta(days=ahead), one.begin, self.timezone)
            for ahead in range(_WEEK + 1)
            for one in self.openings
            if (wall.weekday() + ahead) % _WEEK in one.days
        ]
        return min((one for one in begins if one > wall), default=None)


@dataclass(frozen=True)
class TenantOfficeHours:
    """The hours of all tenants. `timezones`: those of the tenants that have their own."""

    common: OfficeHours = OfficeHours()
    timezones: Mapping[str, tzinfo] = field(default_factory=dict)

    def of(self, tenant: str) -> OfficeHours:
        timezone = self.timezones.get(tenant)
        return replace(self.common, timezone=timezone) if timezone else self.common


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
