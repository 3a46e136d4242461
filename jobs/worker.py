"""Runs the iterations of jobs: one worker of the queue for each kind that this process has, in any number of processes.

    task ─▶ the job, if it is still the task's ─▶ begin ─▶ Job.run ─▶ end: the next iteration's task in the same step

Guarantees: an iteration ends once; after a crash another process goes on with what was stored; a shutdown finishes the
unit in hand and gives the rest to another process at once, without a change of the job's state (U-07 to U-14).
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from core.errors import AdaError, Refused
from core.jobs import JobRecord, Jobs, JobState, StoredJob
from core.jobs.notices import TUBE as NOTICES
from core.jobs.record import line_of
from core.jobs.storage import job_id_of, tube_of
from core.model.clock import from_ms, to_ms
from core.queue import Attempt, Done, QueueClient, Result, Retry, Tube, Worker
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.services import Services
from jobs.external_services import Outside
from jobs.guard import Guard
from jobs.iteration import Iteration
from jobs.job import Job
from jobs.losses import BACKOFF, Losses
from jobs.notices.notifier import Notifier
from jobs.reasons import reason_for_operator, reason_for_user
from jobs.recovery.interrupted import Standing, count_interrupted
from jobs.recovery.watchdog import Watchdog
from jobs.registry import Registry
from jobs.run_job import run_job
from jobs.signals import Finished, Interrupted, Lost, Pause

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=10)

_MARGIN = timedelta(seconds=30)
"""The queue takes an iteration for hanging so long after `max_runtime`, at which this worker ends it."""

_NOTICES_AT_ONCE = 10
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
        notifier: Notifier | None = None,
    ) -> None:
        self._store = store
        self._client = client
        self._registry = registry
        self._outside = outside or Outside(store)
        self.jobs = Jobs(store)
        self.watchdog = Watchdog(store, self.jobs, registry.schedules)
        self._storage = self.jobs.storage
        self._losses = Losses(self.jobs)
        self._workers = {tube_of(kind.name): self._worker(kind, concurrency, lease) for kind in registry.kinds.values()}
        notify = (notifier or Notifier(Services.on(store))).handle
        self._workers[NOTICES] = client.worker(NOTICES, notify, _NOTICES_AT_ONCE, lease=lease)
        self._stop_requested = asyncio.Event()

    def _worker(self, kind: type[Job], concurrency: int, lease: timedelta) -> Worker:
        """Return the worker of a kind. A job that blocks the event loop loses its lease, and so do its neighbours:
        other processes take them up.
        """
        longest = kind.max_runtime + _MARGIN
        tube = tube_of(kind.name)
        return self._client.worker(
            tube, self.handle, concurrency, lease=lease, max_runtime=longest, extends_blocked=False
        )

    async def run(self) -> None:
        """Run iterations until `stop()`."""
        await self.jobs.kinds.publish(self._registry.schedules)
        for tube in self._workers:
            await self._client.tubes.create(Tube(tube, attempts=_ATTEMPTS))
        found = await count_interrupted(self._store, self.jobs, self._registry.kinds)
        if any(found.values()):
            counts = (found[Standing.INTERRUPTED], found[Standing.DUE], found[Standing.TAKEN])
            log.info("jobs that were interrupted and go on: %s; due: %s; with another process: %s", *counts)
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
        """Return one attempt at one iteration."""
        job = await self._storage.read(job_id_of(attempt.task.lane))
        if job is None or job.record.generation != int(attempt.body) or not job.record.has_task:
            return None
        delay = await self._losses.delay(job, attempt)
        if delay is not None:
            return delay
        try:
            return await self._attempt(self._registry.kinds[job.id.kind], job, attempt)
        finally:
            self._losses.end(job.id)

    async def _attempt(self, kind: type[Job], job: StoredJob, attempt: Attempt) -> Result:
        holder = f"{attempt.task.token} {attempt.task.id}"
        again = f"iteration {job.record.iteration + 1} goes on; lines of it may come again" if job.record.begun else ""
        beginning = StoredJob(job.id, self._begun(job.record), job.version)
        begun = await self._storage.save(beginning, again, holder=holder)
        if begun is None:  # it was changed at this moment
            return Retry(timedelta(0), checkpoint=attempt.checkpoint)
        guard = Guard(self._storage, begun, holder, lambda: self._must_stop(attempt), attempt.holds_lease)
        self._losses.begin(guard)
        iteration = Iteration(guard, await self._storage.steps(job.id), self._outside, self.jobs.now)
        try:
            fault = await run_job(kind, iteration, guard)
        except asyncio.CancelledError:
            if self._stop_requested.is_set():
                await guard.write("over")
            raise
        if fault is None and await self._end(kind, guard.job, holder, iteration.skipped_effects):
            return None
        return await self._broken_off(kind, guard, attempt, fault)

    def _must_stop(self, attempt: Attempt) -> bool:
        return self._stop_requested.is_set() or attempt.cancelled.is_set()

    async def _broken_off(self, kind: type[Job], guard: Guard, attempt: Attempt, fault: BaseException | None) -> Result:
        """Return the result of an iteration that has not reached its end. An attempt that has lost its lease changes
        nothing.
        """
        result: Result = None
        match fault:
            case Lost():
                return self._lost(guard, attempt)
            case Interrupted():
                result = self._interrupted(attempt)
            case Pause():
                await self._pause(guard.job, fault)
            case Finished():
                await self._finish(guard.job, str(fault))
            case BaseException():
                result = await self._failed(kind, guard, attempt, fault)
        await guard.write("over")
        return result

    def _begun(self, record: JobRecord) -> JobRecord:
        runs = replace(record, state=JobState.RUNNING, paused_by=None, reason="", service="", resume_at=0)
        return replace(runs, begun=True, last_run=self._now())

    async def _end(self, kind: type[Job], job: StoredJob, holder: str, skipped: Sequence[str]) -> bool:
        """Return False if another attempt has taken the job, or it has changed: then that change has put a task."""
        record, zone = job.record, ZoneInfo(job.record.timezone)
        due = kind.schedule.next(from_ms(record.anchor), from_ms(record.last_run), self.jobs.now(), zone)
        after = replace(record, iteration=record.iteration + 1, due=to_ms(due), begun=False)
        line = f"done for ever in an earlier iteration, so not now: {', '.join(skipped)}" if skipped else ""
        return await self._storage.end_iteration(StoredJob(job.id, after, job.version), holder, line)

    def _interrupted(self, attempt: Attempt) -> Result:
        """Return the result of an interruption: a shutdown gives the rest to another process; a pause or a stop leaves
        nothing to do.
        """
        return Retry(timedelta(0), checkpoint=attempt.checkpoint) if self._stop_requested.is_set() else None

    def _lost(self, guard: Guard, attempt: Attempt) -> Result:
        """Return the result of a lost lease. It has no effect if another attempt has the task; if none has it yet, the
        iteration goes on at once.
        """
        job = guard.job
        log.info("job %s: the attempt of iteration %s has lost its lease", job.id.name, job.record.iteration)
        return Retry(timedelta(0), checkpoint=attempt.checkpoint)

    async def _pause(self, job: StoredJob, pause: Pause) -> None:
        """Pause a job. What was ordered meanwhile stays, and so does what another attempt does: this one may have been
        frozen.
        """
        try:
            await self.jobs.pause(
                job.id,
                pause.by,
                pause.reason,
                pause.until,
                service=pause.service,
                expected=job.version,
                by_job=True,
            )
        except Refused as refusal:
            log.info("job %s: not paused by %s: %s", job.id.name, pause.by, refusal.code)

    async def _finish(self, job: StoredJob, reason: str) -> None:
        try:
            await self.jobs.finish(job.id, reason, expected=job.version)
        except Refused as refusal:
            log.info("job %s: not ended (%s): %s", job.id.name, reason, refusal.code)

    async def _failed(self, kind: type[Job], guard: Guard, attempt: Attempt, fault: BaseException) -> Result:
        """Try again after a pause; in the end the job has failed."""
        job, failures = guard.job, int(attempt.checkpoint or 0) + 1
        text, reason = line_of(reason_for_operator(fault)), line_of(reason_for_user(fault))
        log.warning("job %s: iteration %s failed (%s): %s", job.id.name, job.record.iteration, failures, text)
        if failures < kind.most_failures:
            return await _try_again(kind, guard, failures, reason)
        try:
            await self.jobs.fail(job.id, reason, expected=job.version)
        except AdaError as refusal:
            log.info("job %s: not failed: %s", job.id.name, refusal)
        return Done()

    def _now(self) -> int:
        return to_ms(self.jobs.now())


async def _try_again(kind: type[Job], guard: Guard, failures: int, reason: str) -> Result:
    """Return the next try, with a line in the live log: the state of the job is `running` meanwhile."""
    pause = BACKOFF.pause(failures)
    line = f"failure {failures} of {kind.most_failures}, tried again in {pause.total_seconds():.0f} s: {reason}"
    await guard.write("", log=line)
    return Retry(pause, checkpoint=str(failures), error=reason)
