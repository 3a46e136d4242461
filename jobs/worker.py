"""Runs the iterations of jobs: one worker of the queue for each kind that this process has, in any number of processes.

    task ─▶ the job, if it is still the task's ─▶ begin ─▶ Job.run ─▶ end: the next iteration's task in the same step

Guarantees: an iteration ends once; after a crash another process goes on with what was stored; a shutdown finishes the
unit in hand and gives the rest to another process at once, without a change of the job's state (U-07 to U-14).
"""

import asyncio
import logging
from datetime import timedelta
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from core.errors import AdaError, Refused
from core.jobs import Actor, JobRecord, Jobs, JobState, StoredJob
from core.jobs.record import line_of
from core.jobs.storage import job_id_of, tube_of
from core.model.backoff import Backoff
from core.model.clock import from_ms, to_ms
from core.queue import Attempt, Done, QueueClient, Result, Retry, Tube
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from jobs.iteration import Iteration
from jobs.job import Job
from jobs.outside import Outside
from jobs.reasons import reason_for_operator, reason_for_user
from jobs.registry import Registry
from jobs.signals import Finished, Interrupted, Lost, Pause, SelfCancelled, TookTooLong
from jobs.watchdog import Watchdog

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=10)
_BACKOFF = Backoff(timedelta(seconds=2), timedelta(minutes=5))
_ATTEMPTS = 1_000_000
"""This worker counts failures itself: an attempt that was interrupted is none."""


class JobWorker:
    """One per process; to `run()` and to `stop()`. `concurrency`: how many iterations of each kind run at once."""

    def __init__(
        self,
        store: Store,
        client: QueueClient,
        registry: Registry,
        concurrency: int = 100,
        lease: timedelta = LEASE,
        outside: Outside | None = None,
    ) -> None:
        self._client = client
        self._registry = registry
        self._outside = outside or Outside(store)
        self.jobs = Jobs(store)
        self.watchdog = Watchdog(store, self.jobs, registry.schedules)
        self._storage = self.jobs.storage
        tubes = [tube_of(kind) for kind in registry.kinds]
        self._workers = {tube: client.worker(tube, self.handle, concurrency, lease=lease) for tube in tubes}
        self._stop_requested = asyncio.Event()

    async def run(self) -> None:
        """Run iterations until `stop()`."""
        await self.jobs.kinds.publish(self._registry.schedules)
        for tube in self._workers:
            await self._client.tubes.create(Tube(tube, attempts=_ATTEMPTS))
        watchdog = asyncio.create_task(self.watchdog.run())
        try:
            await asyncio.gather(self._stop_requested.wait(), *(worker.run() for worker in self._workers.values()))
        finally:
            await cancel_and_wait(watchdog)

    def stop(self, grace: timedelta) -> None:
        """End `run`: units in hand are finished, within `grace`; the rest goes back into the queue."""
        self._stop_requested.set()
        for worker in self._workers.values():
            worker.stop(grace)

    async def handle(self, attempt: Attempt) -> Result:
        """One attempt at one iteration."""
        job = await self._storage.read(job_id_of(attempt.task.lane))
        if job is None or job.record.generation != int(attempt.body) or not job.record.has_task:
            return None
        return await self._attempt(self._registry.kinds[job.id.kind], job, attempt)

    async def _attempt(self, kind: type[Job], job: StoredJob, attempt: Attempt) -> Result:
        holder = attempt.task.token
        again = f"iteration {job.record.iteration + 1} goes on; lines of it may come again" if job.record.begun else ""
        beginning = StoredJob(job.id, self._begun(job.record), job.version)
        begun = await self._storage.save(beginning, again, holder=holder)
        if begun is None:  # it was changed at this moment
            return Retry(timedelta(0), checkpoint=attempt.checkpoint)
        steps = await self._storage.steps(job.id)
        stopping = self._stop_requested.is_set
        iteration = Iteration(self._storage, begun, holder, steps, stopping, attempt.holds_lease, self._outside)
        try:
            await _run(kind, iteration)
        except Interrupted:
            return self._interrupted(attempt)
        except Lost:
            return self._lost(job, attempt)
        except Pause as pause:
            return await self._pause(begun, pause)
        except Finished as end:
            return await self._finish(begun, holder, str(end))
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - whatever a job raises is its failure
            return await self._failed(kind, begun, attempt, fault)
        return await self._end(kind, begun, holder)

    def _begun(self, record: JobRecord) -> JobRecord:
        return replace(
            record, state=JobState.RUNNING, paused_by=None, reason="", resume_at=0, begun=True, last_run=self._now()
        )

    async def _end(self, kind: type[Job], job: StoredJob, holder: str) -> Result:
        """Without effect if another attempt holds the job, or it has changed: then that change has put a task."""
        record, zone = job.record, ZoneInfo(job.record.timezone)
        due = kind.schedule.next(from_ms(record.anchor), from_ms(record.last_run), self.jobs.now(), zone)
        after = replace(record, iteration=record.iteration + 1, due=to_ms(due), begun=False)
        await self._storage.end_iteration(StoredJob(job.id, after, job.version), holder, "")
        return None

    def _interrupted(self, attempt: Attempt) -> Result:
        """A shutdown gives the rest to another process; a pause or a stop leaves nothing to do."""
        return Retry(timedelta(0), checkpoint=attempt.checkpoint) if self._stop_requested.is_set() else None

    def _lost(self, job: StoredJob, attempt: Attempt) -> Result:
        """Without effect if another attempt has the task; if none has it yet, the iteration goes on at once."""
        log.info("job %s: the attempt of iteration %s has lost its lease", job.id.name, job.record.iteration)
        return Retry(timedelta(0), checkpoint=attempt.checkpoint)

    async def _pause(self, job: StoredJob, pause: Pause) -> Result:
        """What was ordered meanwhile stays, and so does what another attempt does: this one may have been frozen."""
        try:
            await self.jobs.pause(job.id, pause.by, pause.reason, pause.until, expected=job.version)
        except Refused as refusal:
            log.info("job %s: not paused by %s: %s", job.id.name, pause.by, refusal.code)
        return None

    async def _finish(self, job: StoredJob, holder: str, reason: str) -> Result:
        await self._log(job, holder, f"finished: {reason}" if reason else "finished")
        try:
            await self.jobs.stop(job.id, Actor.USER, expected=job.version)
        except Refused as refusal:
            log.info("job %s: not ended (%s): %s", job.id.name, reason, refusal.code)
        return None

    async def _failed(self, kind: type[Job], job: StoredJob, attempt: Attempt, fault: BaseException) -> Result:
        """Try again after a pause; in the end the job has failed."""
        failures = int(attempt.checkpoint or 0) + 1
        text, reason = line_of(reason_for_operator(fault)), line_of(reason_for_user(fault))
        log.warning("job %s: iteration %s failed (%s): %s", job.id.name, job.record.iteration, failures, text)
        if failures < kind.most_failures:
            return await self._try_again(kind, job, attempt, failures, reason)
        try:
            await self.jobs.fail(job.id, reason, expected=job.version)
        except AdaError as refusal:
            log.info("job %s: not failed: %s", job.id.name, refusal)
        return Done()

    async def _try_again(self, kind: type[Job], job: StoredJob, attempt: Attempt, failures: int, reason: str) -> Result:
        """The live log shows it: the state of the job is `running` meanwhile."""
        pause = _BACKOFF.pause(failures)
        line = f"failure {failures} of {kind.most_failures}, tried again in {pause.total_seconds():.0f} s: {reason}"
        await self._log(job, attempt.task.token, line)
        return Retry(pause, checkpoint=str(failures))

    async def _log(self, job: StoredJob, holder: str, text: str) -> None:
        """Add a line to the live log, if this attempt still holds the job."""
        await self._storage.write(job.id, holder, "", "", "", text)

    def _now(self) -> int:
        return to_ms(self.jobs.now())


async def _run(kind: type[Job], iteration: Iteration) -> None:
    """Raises what the job raises; TookTooLong; SelfCancelled if its own code, and not this process, has cancelled
    it.
    """
    limit = asyncio.timeout(kind.max_runtime.total_seconds())
    try:
        async with limit:
            await kind().run(iteration)
    except TimeoutError:
        if limit.expired():
            raise TookTooLong(f"the iteration took longer than {kind.max_runtime}") from None
        raise
    except asyncio.CancelledError:
        running = asyncio.current_task()
        if running is None or running.cancelling():
            raise
        raise SelfCancelled("the iteration was cancelled by its own code") from None
