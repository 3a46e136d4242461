"""Changes all jobs that a filter selects: as many as the operator has counted, and none that has changed since then.

A call changes a bounded number and returns where it has stopped. Each job is changed alone: one that refuses stops no
other, and is counted by the code of its refusal.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from core.errors import Invalid, Refused
from core.jobs.jobs import Jobs
from core.jobs.record import JobId, StoredJob
from core.jobs.views import Wanted
from core.model.clock import to_ms

MOST_COUNTED = 10_000
"""Jobs that are counted one by one."""

_PAGE = 100
_STEP = 500
"""About so many jobs are changed by one call."""

_PAGES, _PAGES_COUNTED = 50, 1000
"""Pages that one call reads."""

Change = Callable[[JobId], Awaitable[Any]]
"""Changes one job. False: there was nothing to change."""


class JobCount(Struct, frozen=True):
    """The number of jobs that a filter selects. `has_more`: there are more than were counted. `now`: the server's ms,
    up to which a change may reach.
    """

    count: int
    has_more: bool
    now: int


class JobChanges(Struct, frozen=True):
    """`changed`: jobs that this call has changed; `unchanged`: those that others have changed since, or with nothing to
    change; `refused`: how many have refused, by code. `next`: where a further call goes on; None if there are no more.
    """

    changed: int
    unchanged: int
    refused: dict[str, int]
    next: str | None


class BulkJobs:
    """The jobs of a tenant that a filter selects."""

    def __init__(self, jobs: Jobs, tenant: str, wanted: Wanted) -> None:
        """Raises Invalid SELECTION_EMPTY."""
        if wanted == Wanted():
            raise Invalid("SELECTION_EMPTY", "Choose jobs by state, kind, a text or a reason.", "filter")
        self._jobs = jobs
        self._tenant = tenant
        self._wanted = wanted

    async def count(self, before: int = 0) -> JobCount:
        """Count the jobs: those of a state by their counter, others one by one. `before`: only those that have not
        changed since (ms).
        """
        now, state = to_ms(self._jobs.now()), self._wanted.state
        if state and self._wanted == Wanted(state) and not before:
            return JobCount((await self._jobs.storage.counts(self._tenant))[state], False, now)
        found, cursor = 0, ""
        for _ in range(_PAGES_COUNTED):
            page, cursor = await self._jobs.list(self._tenant, self._wanted, cursor, _PAGE)
            found += sum(_is_as_of(job, before or now) for job in page)
            if not cursor or found >= MOST_COUNTED:
                break
        return JobCount(found, bool(cursor), now)

    async def change(self, change: Change, before: int, expected: int, cursor: str = "") -> JobChanges:
        """Change the jobs that have not changed since `before` (ms), at most `expected`, and at most about 500 in one
        call. A repetition with the same `before` changes none again. Raises Invalid CURSOR_MALFORMED.
        """
        ends: Counter[str] = Counter()
        for _ in range(_PAGES):
            page, cursor = await self._jobs.list(self._tenant, self._wanted, cursor, _PAGE)
            while page and ends["changed"] < expected:
                most = expected - ends["changed"]
                ends.update(await asyncio.gather(*(_end_of(change, job, before) for job in page[:most])))
                page = page[most:]
            if not cursor or ends["changed"] >= expected or ends.total() >= _STEP:
                break
        changed, unchanged = ends.pop("changed", 0), ends.pop("unchanged", 0)
        return JobChanges(changed, unchanged, dict(ends), None if changed >= expected else cursor or None)


async def _end_of(change: Change, job: StoredJob, before: int) -> str:
    """Change one job. Returns "changed", "unchanged", or the code of its refusal."""
    if not _is_as_of(job, before):
        return "unchanged"
    try:
        return "unchanged" if await change(job.id) is False else "changed"
    except Refused as refusal:
        return refusal.code


def _is_as_of(job: StoredJob, before: int) -> bool:
    return max(job.record.created, job.record.changed) <= before
