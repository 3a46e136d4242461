"""Recovers jobs whose iteration is overdue, and reports at the start of a process what it finds.

`Watchdog` gives a job without a task one (U-13), reports a job that waits for code, and drops children that ended long
ago. A job and its task are stored in one step, so a task is missing only if an operator has cancelled or purged it, or
data were restored from an old copy. A job waits for code if a deploy has removed its class, or has not yet brought it.

`count_interrupted` (U-09) and `report_changed_code` (U-31) change nothing: the tasks of the queue bring each job back,
and the attempt decides what it may do (`code_names.left_to_others`).

`Losses` counts attempts that end without a word: their process died, hung, or was frozen for longer than the lease.

One of the jobs of such a process may be the reason, so each of them counts a loss, until it stores a result. A job that
was lost twice in a row runs beside no other such job in a process: then a job that kills its process takes down itself
and not the same others again, and after `MOST_LOSSES` it has failed.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum

from msgspec.structs import replace

from core.errors import NotFound, Refused, StoreError
from core.jobs import JobId, Jobs, Schedule, StoredJob
from core.jobs.signals import Schema
from core.jobs.states import WORKING
from core.model.clock import Backoff, to_ms
from core.model.states import TaskState
from core.queue import Done, Queue, Result, Retry
from core.redis.store import Store
from jobs.code_names import left_to_others, unknown_names
from jobs.job import Job
from jobs.recording.guard import Guard

log = logging.getLogger(__name__)

EVERY = timedelta(seconds=10)
LATE = timedelta(seconds=30)
"""An iteration that was due so long ago is looked at."""

DROP_EVERY = timedelta(hours=1)

_PAGE = 100
_LATEST = 2**53
"""After every time at which a job may be due (ms)."""


class Watchdog:
    """Checks overdue jobs now and then. `schedules`: the kinds that this process runs; `queries`, `signals`: theirs."""

    def __init__(
        self,
        store: Store,
        jobs: Jobs,
        schedules: Mapping[str, Schedule],
        queries: Sequence[tuple[str, str]] = (),
        signals: Mapping[str, Mapping[str, Schema]] | None = None,
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._schedules = schedules
        self._queries = queries
        self._signals = signals
        self._queue = Queue(store)
        self._starts = [0] * store.shards  # of the next page
        self._drops_at = jobs.now()

    async def run(self) -> None:
        """Publish the kinds of this process and recover jobs, every ten seconds, until cancelled. Drop every hour."""
        while True:
            try:
                await self._jobs.kinds.publish(self._schedules, self._queries, self._signals)
                await self.recover()
                await self._drop_ended()
            except StoreError as fault:
                log.warning("jobs are not watched: %s", fault)
            await asyncio.sleep(EVERY.total_seconds())

    async def recover(self) -> int:
        """Mend one page of each shard; the next call goes on after it. Returns how many jobs were changed."""
        return sum([await self._recover_page(shard) for shard in range(self._store.shards)])

    async def _drop_ended(self) -> None:
        if self._jobs.now() < self._drops_at:
            return
        if dropped := await self._jobs.storage.drop_ended():
            log.info("%d jobs were dropped that other jobs had started and that ended long ago", dropped)
        self._drops_at = self._jobs.now() + DROP_EVERY

    async def _recover_page(self, shard: int) -> int:
        before, start = to_ms(self._jobs.now() - LATE), self._starts[shard]
        page = await self._jobs.storage.overdue(shard, before, start, _PAGE)
        self._starts[shard] = start + _PAGE if len(page) == _PAGE else 0
        return sum([await self._recover_job(job_id) for job_id in page])

    async def _recover_job(self, job_id: JobId) -> bool:
        job = await self._jobs.storage.read(job_id)
        if job is None or not job.record.has_task:
            return False
        state = await self._task_state(job)
        if state is None:
            log.warning("job %s has no task; it gets one", job_id.name)
            return await self._jobs.storage.save(job, "found without a task") is not None
        if state is TaskState.TAKEN or job.record.state not in WORKING:
            return False
        return await self._explain_waiting(job)

    async def _explain_waiting(self, job: StoredJob) -> bool:
        reason = await self._jobs.kinds.waiting(job.id.kind)
        if not reason or reason == job.record.reason:
            return False
        waiting = StoredJob(job.id, replace(job.record, reason=reason), job.version)
        return await self._jobs.storage.save(waiting, reason, puts_task=False) is not None

    async def _task_state(self, job: StoredJob) -> TaskState | None:
        """Return the task of a job; None if it has none, or the task has ended."""
        try:
            task = await self._queue.inspector.peek(job.record.task)
        except NotFound:
            return None
        return None if task.ended is not None else task.state


class Standing(StrEnum):
    """The place of a job whose iteration should run now. `taken`: another process runs it, or has died and still has
    the lease.
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


async def report_changed_code(store: Store, jobs: Jobs, kinds: Mapping[str, type[Job]]) -> None:
    """Log each job of these kinds whose iteration has stored what this code does not name, as long as the server is
    there.
    """
    try:
        await _report_all(store, jobs, kinds)
    except StoreError as fault:
        log.warning("the code of jobs is not compared with what they have stored: %s", fault)


async def _report_all(store: Store, jobs: Jobs, kinds: Mapping[str, type[Job]]) -> None:
    for shard in range(store.shards):
        start = 0
        while page := await jobs.storage.overdue(shard, _LATEST, start, _PAGE):
            for job_id in page:
                if job_id.kind in kinds:
                    await _report(jobs, kinds[job_id.kind], job_id)
            start += len(page)


async def _report(jobs: Jobs, kind: type[Job], job_id: JobId) -> None:
    job = await jobs.storage.read(job_id)
    if job is None or job.record.state not in WORKING or not job.record.begun:
        return
    stored = await jobs.storage.steps(job_id)
    reason = left_to_others(kind, job.record, stored)
    if not reason and (steps := unknown_names(kind, stored)):
        reason = f"the code has no {', '.join(steps)} any more; if it has another name now, it is done again"
    if reason:
        log.warning("job %s: %s", job_id.name, reason)


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
