"""Quiet hours: what falls into them is moved to their end (D-08). Office hours: what arrives outside them is accepted
at once, and shown to people of staff when the next ones begin (R-26). Pure.

Times are compared on the wall clock of a time zone, also in the two nights in which the clock changes.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import NamedTuple

_SPREAD_MS = 359_000
_MINUTE = timedelta(minutes=1)

_WEEK = 7


@dataclass(frozen=True)
class QuietHours:
    """From `begin` to before `end`, on the wall clock of `timezone`. They may cross midnight."""

    begin: time
    end: time
    timezone: tzinfo = UTC

    def contain(self, at: datetime) -> bool:
        """Return whether a moment lies in the quiet hours."""
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
