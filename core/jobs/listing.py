"""Lists the jobs of a tenant in pages, shard after shard."""

import asyncio

from core.errors import malformed_cursor
from core.jobs.record import StoredJob
from core.jobs.states import JobState
from core.jobs.storage import JobStorage


async def page_of_jobs(
    storage: JobStorage, shards: int, tenant: str, state: JobState | None, kind: str, cursor: str, limit: int
) -> tuple[list[StoredJob], str]:
    """Return (jobs, cursor of the next page or ""). Raises Invalid CURSOR_MALFORMED."""
    shard, start = _position(cursor, shards)
    names = await storage.names(tenant, shard, start, limit)
    read = await asyncio.gather(*(storage.read(name) for name in names))
    found = [job for job in read if job and (not kind or job.id.kind == kind)]
    following = f"{shard + 1}.0" if shard + 1 < shards else ""
    if len(names) == limit:
        following = f"{shard}.{start + limit}"
    return [job for job in found if state is None or job.record.state is state], following


def _position(cursor: str, shards: int) -> tuple[int, int]:
    """Return (shard, number) of a cursor. Raises Invalid CURSOR_MALFORMED."""
    shard, dot, start = cursor.partition(".")
    if not cursor:
        return 0, 0
    if not (dot and shard.isdecimal() and start.isdecimal() and int(shard) < shards):
        raise malformed_cursor()
    return int(shard), int(start)
