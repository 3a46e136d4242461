"""Counts at the start of a process what it has to do: the iterations that were interrupted, those that are due (U-09).

It changes nothing: the tasks of the queue bring each job back by themselves.
"""

import asyncio
from collections import Counter
from collections.abc import Collection
from enum import StrEnum

from core.errors import NotFound
from core.jobs import JobId, Jobs
from core.jobs.states import WORKING
from core.model.clock import to_ms
from core.model.states import TaskState
from core.queue import Queue
from core.redis.store import Store

_PAGE = 100


class Standing(StrEnum):
    """Where a job is whose iteration should run now. `taken`: another process runs it, or has died and still has the
    lease.
    """

    INTERRUPTED = "interrupted"
    DUE = "due"
    TAKEN = "taken"


async def count_interrupted(store: Store, jobs: Jobs, kinds: Collection[str]) -> Counter[Standing]:
    """Return how many jobs of these kinds have each standing."""
    before, queue, found = to_ms(jobs.now()), Queue(store), Counter[Standing]()
    for shard in range(store.shards):
        start = 0
        while page := await jobs.storage.overdue(shard, before, start, _PAGE):
            wanted = [job_id for job_id in page if job_id.kind in kinds]
            standings = await asyncio.gather(*(_standing(jobs, queue, job_id) for job_id in wanted))
            found.update(one for one in standings if one is not None)
            start += len(page)
    return found


async def _standing(jobs: Jobs, queue: Queue, job_id: JobId) -> Standing | None:
    """Return how a job stands; None if it has nothing to do now."""
    job = await jobs.storage.read(job_id)
    if job is None or job.record.state not in WORKING:
        return None
    try:
        task = await queue.inspector.peek(job.record.task)
    except NotFound:
        return None
    if task.state is TaskState.TAKEN:
        return Standing.TAKEN
    return Standing.INTERRUPTED if job.record.begun else Standing.DUE
