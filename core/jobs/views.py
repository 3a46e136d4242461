"""A job as HTTP and the command line show it, and the jobs of a tenant in pages, shard after shard."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import cursor_number
from core.jobs.record import JobRecord, StoredJob
from core.jobs.schedule import StoredSchedule
from core.jobs.states import WORKING, Actor, JobState
from core.jobs.storage import JobStorage
from core.model.clock import from_ms
from core.model.json_form import compact_json


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter of jobs: None and "" stand for all. `text`: what their parameters or their own state contain;
    `reason`: what the reason for which they do not run contains, for example that of a failure.
    """

    state: JobState | None = None
    kind: str = ""
    text: str = ""
    reason: str = ""

    def includes(self, job: StoredJob) -> bool:
        """Return whether a job is listed."""
        if (self.state and job.record.state is not self.state) or (self.kind and job.id.kind != self.kind):
            return False
        if self.reason.casefold() not in job.record.reason.casefold():
            return False
        own = job.own or job.record.own
        facts = compact_json([job.record.parameters, own.data if own else None])
        return self.text.casefold() in facts.casefold()


async def page_of_jobs(
    storage: JobStorage, shards: int, tenant: str, wanted: Wanted, cursor: str, limit: int
) -> tuple[list[StoredJob], str]:
    """Return (jobs, cursor of the next page or ""). Raises Invalid CURSOR_MALFORMED."""
    shard, start = _position(cursor, shards)
    names = await storage.names(tenant, shard, start, limit)
    read = await asyncio.gather(*(storage.read(name) for name in names))
    following = str(shard + 1) if shard + 1 < shards else ""
    if len(names) == limit:
        following = str((start + limit) * shards + shard)
    return [job for job in read if job and wanted.includes(job)], following


def _position(cursor: str, shards: int) -> tuple[int, int]:
    """Return (shard, number in it) of a cursor, which is number × shards + shard. Raises Invalid CURSOR_MALFORMED."""
    start, shard = divmod(cursor_number(cursor), shards)
    return shard, start


class JobView(Struct, frozen=True, omit_defaults=True):
    """`id`: `KIND.USER` or `KIND~KEY.USER`. `paused_by`, `reason`: why it does not run. `resumes_at`: when its
    pause ends by itself. `parent`: the job that has started it; `children`: those that it has started and not waited
    for; `result`: what a job that has finished has returned.
    `next_run`: when its next iteration is due, or the one that has begun goes on; `waits_for`: what that waits for;
    `iterations`: how many have ended. `own_state`: the state of its own. `schedule`: in place of that of its kind.
    """

    id: str
    kind: str
    user: str
    state: JobState
    iterations: int
    created_at: datetime
    changed_at: datetime
    timezone: str
    parameters: dict[str, Any]
    paused_by: Actor | None = None
    reason: str | None = None
    resumes_at: datetime | None = None
    own_state: Any = None
    waits_for: str | None = None
    parent: str | None = None
    children: list[str] = []
    result: Any = None
    schedule: StoredSchedule | None = None
    next_run: datetime | None = None
    last_run: datetime | None = None


def view_of(job: StoredJob) -> JobView:
    record, own = job.record, job.own or job.record.own
    works = record.state in WORKING
    return JobView(
        job.id.name,
        job.id.kind,
        job.id.user,
        record.state,
        record.iteration + (record.state is JobState.FINISHED),
        from_ms(record.created),
        from_ms(record.changed or record.created),
        record.timezone,
        record.parameters,
        paused_by=record.paused_by,
        reason=record.reason or None,
        resumes_at=_time(record.resume_at),
        own_state=own.data if own else None,
        waits_for=_waited_for(record) if works else None,
        parent=record.parent.job if record.parent else None,
        children=record.children,
        result=msgspec.json.decode(record.result),
        schedule=record.schedule,
        next_run=_time(record.due) if works else None,
        last_run=_time(record.last_run),
    )


def _waited_for(record: JobRecord) -> str | None:
    if not record.suspended:
        return None
    return " or ".join(f"the signal {signal!r}" for signal in record.waits_for) or "a time"


def _time(ms: int) -> datetime | None:
    return from_ms(ms) if ms else None
