"""Finds jobs that have no task any more, and gives them one (U-13).

A job and its task are stored in one step, so this happens only if an operator has cancelled or purged the task, or data
were restored from an old copy. What runs is left alone: its task exists.
"""

import asyncio
import logging
from datetime import timedelta

from core.errors import NotFound, StoreError
from core.jobs import JobId, Jobs, StoredJob
from core.model.clock import to_ms
from core.queue import Queue
from core.redis.store import Store

log = logging.getLogger(__name__)

EVERY = timedelta(seconds=10)
LATE = timedelta(seconds=30)
"""An iteration that was due so long ago is looked for."""

_PAGE = 100


class Watchdog:
    """One per process that runs jobs."""

    def __init__(self, store: Store, jobs: Jobs) -> None:
        self._store = store
        self._jobs = jobs
        self._queue = Queue(store)

    async def run(self) -> None:
        """Look every ten seconds until cancelled."""
        while True:
            try:
                await self.look()
            except StoreError as fault:
                log.warning("jobs are not watched: %s", fault)
            await asyncio.sleep(EVERY.total_seconds())

    async def look(self) -> int:
        """Returns how many jobs were given a task."""
        before, found = to_ms(self._jobs.now() - LATE), 0
        for shard in range(self._store.shards):
            start = 0
            while page := await self._jobs.storage.overdue(shard, before, start, _PAGE):
                found += sum([await self._give_task(job_id) for job_id in page])
                start += _PAGE
        return found

    async def _give_task(self, job_id: JobId) -> bool:
        job = await self._jobs.storage.read(job_id)
        if job is None or not job.record.has_task or await self._has_task(job):
            return False
        log.warning("job %s has no task; it gets one", job_id.name)
        return await self._jobs.storage.save(job, "found without a task") is not None

    async def _has_task(self, job: StoredJob) -> bool:
        try:
            task = await self._queue.peek(job.record.task)
        except NotFound:
            return False
        return task.ended is None
