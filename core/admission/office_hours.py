"""Office hours: when people of staff get what was written to them (R-26). Pure.

Times are compared on the wall clock of a time zone. What arrives outside is accepted at once, and shown when the next
hours begin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import NamedTuple

_WEEK = 7


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
