"""Lists the jobs of a tenant in pages, shard after shard."""

import asyncio
from dataclasses import dataclass

from core.errors import malformed_cursor
from core.jobs.record import StoredJob
from core.jobs.states import JobState
from core.jobs.storage import JobStorage
from core.model.compact_json import compact_json


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs are listed: None and "" stand for all. `text`: what their parameters or their own state contain;
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
    if cursor and not cursor.isdecimal():
        raise malformed_cursor()
    start, shard = divmod(int(cursor or 0), shards)
    return shard, start
