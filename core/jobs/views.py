"""Jobs as HTTP and the command line show them: one, those of a tenant in pages, shard after shard, and its live log.

The log has the last 1000 lines, numbered from 1, and those that follow (U-22). A reader goes on after the last line
that it has seen. It sleeps without polling: a follower sets the job's bell, a new line deletes it
(`lua/jobs/modules/job_log.lua`), and that wakes all followers of the job.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import StoreRefuses, cursor_number
from core.jobs.record import JobId, JobRecord, StoredJob
from core.jobs.schedule import StoredSchedule
from core.jobs.states import WORKING, Actor, JobState
from core.jobs.storage import JobStorage, place_of
from core.model.clock import from_ms
from core.model.json_form import compact_json
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.keyspace_events import KeyspaceEvents
from core.redis.store import BEGIN as FIRST
from core.redis.store import Store

BEGIN = "0"
_PAGE = 50
LONGEST_SLEEP = 10.0
"""Seconds. A lost event costs a follower no more."""
_BELL_MS = 60_000


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
    shard, after = _position(cursor, shards)
    names = await storage.names(tenant, shard, after, limit)
    read = await asyncio.gather(*(storage.read(name) for name, _ in names))
    following = str(shard + 1) if shard + 1 < shards else ""
    if len(names) >= limit:
        following = str((names[-1][1] - FIRST) * shards + shard)
    return [job for job in read if job and wanted.includes(job)], following


def _position(cursor: str, shards: int) -> tuple[int, int]:
    """Return (shard, ms after which jobs were started first) of a cursor, which is (ms + 1) × shards + shard. Raises
    Invalid CURSOR_MALFORMED.
    """
    after, shard = divmod(cursor_number(cursor), shards)
    return shard, after + FIRST


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


class LogLine(Struct, frozen=True):
    """`id`: its number; `at`: when it was written."""

    id: str
    at: datetime
    text: str


class JobLog:
    """Reads and follows the logs of jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def last(self, job_id: JobId, most: int = 100) -> list[LogLine]:
        """Return the last lines, the oldest first."""
        return await self._from(job_id, -most)

    async def follow(self, job_id: JobId, after: str = BEGIN) -> AsyncGenerator[LogLine, None]:
        """Emit the lines after the line `after`, and then every new one, without end."""
        news, seen, bell = asyncio.Event(), int(after), self._key("job_bell", job_id)
        listening = asyncio.create_task(KeyspaceEvents(self._store, {bell: news.set}).run())
        try:
            while True:
                news.clear()
                with suppress(StoreRefuses):
                    await self._store.command("SET", bell, "", "PX", _BELL_MS)
                for line in await self._after(job_id, seen):
                    seen = int(line.id)
                    yield line
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), LONGEST_SLEEP)
        finally:
            await cancel_and_wait(listening)

    async def _after(self, job_id: JobId, seen: int) -> list[LogLine]:
        """Return the lines after the number `seen`; all, if the log is not the one in which that was seen."""
        lines = await self._from(job_id, -_PAGE)
        if lines and int(lines[0].id) > seen + 1:
            lines = await self._from(job_id, 0)
        is_other = lines and int(lines[-1].id) < seen
        return [line for line in lines if is_other or int(line.id) > seen]

    async def _from(self, job_id: JobId, start: int) -> list[LogLine]:
        found = await self._store.command("LRANGE", self._key("job_log", job_id), start, -1)
        return [_line(entry) for entry in found]

    def _key(self, kind: str, job_id: JobId) -> str:
        shard, name = place_of(job_id, self._store.shards)
        return KEYS[kind].at(shard, name)


def _line(entry: str) -> LogLine:
    number, ms, text = entry.split(" ", 2)
    return LogLine(number, from_ms(ms), text)
