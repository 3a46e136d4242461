"""Counts attempts that end without a word: their process died, hung, or was frozen for longer than the lease.

One of the jobs of such a process may be the reason, so each of them counts a loss, until it stores a result. A job that
was lost twice in a row runs beside no other such job in a process: then a job that kills its process takes down itself
and not the same others again, and after `MOST_LOSSES` it has failed.
"""

import asyncio
import logging
from datetime import timedelta

from core.errors import Refused
from core.jobs import JobId, Jobs, StoredJob
from core.model.clock import Backoff
from core.queue import Done, Result, Retry
from jobs.recording.guard import Guard

log = logging.getLogger(__name__)

MOST_LOSSES = 5
SUSPECT = 2
"""Losses after which a job runs alone."""

ALONE = 60.0
"""Seconds for which a suspect runs alone; a job that kills its process later does so at most `MOST_LOSSES` times."""

BACKOFF = Backoff(timedelta(seconds=2), timedelta(minutes=5))


class Losses:
    """Counts the losses of each job, and delays the attempt after them."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._suspect: JobId | None = None
        self._guard: Guard | None = None
        self._until = 0.0

    async def delay(self, job: StoredJob) -> Result:
        """Count the attempt before this one, if it was lost. Returns how this attempt ends if it may not begin now;
        None if it may.
        """
        losses = job.losses
        if job.holder:
            losses = await self._count(job, losses + 1)
            if losses >= MOST_LOSSES:
                return await self._fail(job, f"its process died or hung {losses} times in a row")
            if losses >= SUSPECT:
                return Retry(BACKOFF.pause(losses))
        if losses < SUSPECT:
            return None
        if self._is_suspect_running():
            return Retry(BACKOFF.first)
        self._suspect, self._guard, self._until = job.id, None, asyncio.get_running_loop().time() + ALONE
        return None

    def begin(self, guard: Guard) -> None:
        """Note that the attempt begins."""
        if self._suspect == guard.job.id:
            self._guard = guard

    def end(self, job_id: JobId) -> None:
        """Note that the attempt has ended in this process."""
        if self._suspect == job_id:
            self._suspect = self._guard = None

    def _is_suspect_running(self) -> bool:
        """Return whether there is a suspect that has not stored a result yet."""
        if self._suspect is None or (self._guard and self._guard.has_stored):
            return False
        return asyncio.get_running_loop().time() < self._until

    async def _count(self, job: StoredJob, losses: int) -> int:
        line = f"loss {losses} of {MOST_LOSSES}: the process of this iteration died, hung or was frozen"
        log.warning("job %s: %s", job.id.name, line)
        return await self._jobs.storage.count_loss(job, line)

    async def _fail(self, job: StoredJob, reason: str) -> Result:
        try:
            await self._jobs.fail(job.id, reason, expected=job.version)
        except Refused as refusal:
            log.info("job %s: not failed: %s", job.id.name, refusal)
        return Done()
