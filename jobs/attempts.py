"""Makes one attempt at an iteration of a job.

    begin ─▶ Job.run ─┬▶ it returns: the next iteration's task, or the end of the job, in the same step
                      ├▶ it sleeps or waits: the task of its continuation
                      └▶ it raises: paused, finished, failed, or tried again

Guarantee: an iteration ends once; an attempt that does not hold the job any more changes nothing.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import msgspec
from msgspec.structs import replace

from core.errors import AdaError, Refused
from core.jobs import JobRecord, Jobs, JobState, StoredJob
from core.jobs.due_times import schedule_of
from core.jobs.record import line_of, zone_of
from core.jobs.units import NULL
from core.model.clock import from_ms, to_ms
from core.queue import Attempt, Done, Result, Retry
from jobs.code_names import left_to_others, names_compensations
from jobs.external_services import Outside
from jobs.iteration import Iteration
from jobs.job import Job
from jobs.limits.slots import WAITS, Slots
from jobs.losses import BACKOFF, Losses
from jobs.reasons import reason_for_operator, reason_for_user
from jobs.recording.effects import Effects
from jobs.recording.guard import Guard
from jobs.run_job import run_job
from jobs.signals import Finished, Interrupted, Lost, Pause, RollBack, Suspended

log = logging.getLogger(__name__)

_WAITS_FOR = "waits for "
"""So the reason of a job begins that waits for a process or a slot."""

_LEFT_FOR = timedelta(seconds=10)
"""A process with other code may take an iteration that this one has left."""


class Attempts:
    """One per process. `is_stopping`: whether the process was asked to end."""

    def __init__(
        self, jobs: Jobs, losses: Losses, outside: Outside, slots: Slots, is_stopping: Callable[[], bool]
    ) -> None:
        self._jobs = jobs
        self._slots = slots
        self._losses = losses
        self._outside = outside
        self._is_stopping = is_stopping

    async def make(self, kind: type[Job], job: StoredJob, attempt: Attempt) -> Result:
        """Make an attempt within the limits of its kind. Returns what becomes of its task."""
        task, holder = attempt.task, _holder_of(attempt)
        if reason := await self._slots.take(kind.limits, job, holder, task):
            return await self._waits(job, reason)
        try:
            result = await self._begin(kind, job, attempt, holder)
        except (Exception, asyncio.CancelledError):
            await self._release(kind, holder, attempt)
            raise
        await self._release(kind, holder, attempt)
        return result

    async def leave(self, kind: type[Job], attempt: Attempt) -> None:
        """Give up the place of a task, that does nothing any more, among those that wait for slots."""
        await self._release(kind, attempt.task.task_id, attempt)

    async def _release(self, kind: type[Job], by: str, attempt: Attempt) -> None:
        if kind.limits:
            await self._slots.release(by, attempt.task)

    async def _waits(self, job: StoredJob, reason: str) -> Result:
        """Let a job wait until it gets its slots; the job says so."""
        if job.record.reason != reason:
            waiting = StoredJob(job.id, replace(job.record, reason=reason), job.version)
            await self._jobs.storage.save(waiting, puts_task=False)
        return WAITS

    async def _begin(self, kind: type[Job], job: StoredJob, attempt: Attempt, holder: str) -> Result:
        if job.record.begun and (reason := left_to_others(kind, job.record, await self._jobs.storage.steps(job.id))):
            return await self._left(job, reason, attempt)
        is_again = job.record.begun and not job.record.suspended
        line = f"iteration {job.record.iteration + 1} goes on" if is_again else ""
        beginning = StoredJob(job.id, self._begun(kind, job.record), job.version)
        begun = await self._jobs.storage.save(beginning, line, holder=holder)
        if begun is None:  # it was changed at this moment
            return Retry(timedelta(0), checkpoint=attempt.checkpoint)
        guard = Guard(
            self._jobs.storage, begun, holder, lambda: self._must_stop(attempt), lambda: self._holds(holder, attempt)
        )
        self._losses.begin(guard)
        return await self._run(kind, guard, attempt)

    async def _run(self, kind: type[Job], guard: Guard, attempt: Attempt) -> Result:
        try:
            steps = dict(await self._jobs.storage.steps(guard.job.id))
            iteration = Iteration(guard, steps, self._outside, self._jobs, kind.state_class(), kind.limits)
            fault = await run_job(kind, iteration, guard)
            if guard.is_replay:
                return await self._taken_back(kind, iteration, guard, attempt, fault)
            if isinstance(fault, Suspended):
                return await self._suspended(iteration, guard, attempt, fault)
            if fault is None and await self._ended(kind, iteration, guard):
                return None
            fault = await self._compensated(kind, iteration, guard, attempt, fault)
        except asyncio.CancelledError:
            if self._is_stopping():
                await guard.write("over")
            raise
        except AdaError as refusal:  # its state cannot be read or stored
            fault = refusal
        return await self._broken_off(kind, guard, attempt, fault)

    async def _compensated(
        self, kind: type[Job], iteration: Iteration, guard: Guard, attempt: Attempt, fault: BaseException | None
    ) -> BaseException | None:
        """Take back what a job has done that fails for good. Returns why the iteration ends; if that fails itself, it
        is tried again as any failure.
        """
        is_failure = isinstance(fault, Exception) and not isinstance(fault, Pause | Finished)
        if fault and is_failure and _is_last(kind, attempt, fault):
            try:
                await iteration.compensations.run(Effects(guard, self._jobs.now))
            except (Exception, Interrupted, Lost) as other:  # noqa: BLE001 - the code of a job
                return other
        return fault

    async def _taken_back(
        self, kind: type[Job], iteration: Iteration, guard: Guard, attempt: Attempt, fault: BaseException | None
    ) -> Result:
        """Take back what a job has done that a person has stopped. `fault`: what has ended the replay; a failure is
        tried again, so that nothing is missed, and at the last time what is known by then is taken back.
        """
        ends = fault is None or isinstance(fault, Interrupted | RollBack | Finished) or _is_last(kind, attempt, fault)
        if self._is_stopping() or isinstance(fault, Lost) or not ends:
            return await self._broken_off(kind, guard, attempt, Interrupted() if fault is None else fault)
        after = guard.after_replay()
        try:
            await iteration.compensations.run(Effects(after, self._jobs.now))
        except (Exception, Interrupted, Lost) as other:  # noqa: BLE001 - the code of a job
            return await self._broken_off(kind, after, attempt, other)
        with suppress(Refused):  # it was changed: that has put a task
            await self._jobs.compensated(guard.job.id, expected=guard.job.version)
        await after.write("over")
        return None

    def _holds(self, holder: str, attempt: Attempt) -> bool:
        return attempt.holds_lease() and self._slots.holds(holder, attempt.task)

    def _must_stop(self, attempt: Attempt) -> bool:
        return self._is_stopping() or attempt.cancelled.is_set()

    async def _left(self, job: StoredJob, reason: str, attempt: Attempt) -> Result:
        """Leave an iteration that has begun with other code to a process that has that; the job says so."""
        if job.record.reason != reason:
            log.warning("job %s: %s", job.id.name, reason)
            waiting = StoredJob(job.id, replace(job.record, reason=reason), job.version)
            await self._jobs.storage.save(waiting, reason, puts_task=False)
        return Retry(_LEFT_FOR, checkpoint=attempt.checkpoint)

    def _begun(self, kind: type[Job], record: JobRecord) -> JobRecord:
        if record.state is JobState.STOPPING:
            return replace(record, reason="" if record.reason.startswith(_WAITS_FOR) else record.reason)
        runs = replace(record, state=JobState.RUNNING, paused_by=None, reason="", service="", resume_at=0)
        last_run = record.last_run if record.suspended else to_ms(self._jobs.now())
        runs = replace(runs, code=record.code if record.begun else kind.version, compensates=names_compensations(kind))
        return replace(runs, begun=True, suspended=False, waits_for=[], last_run=last_run)

    async def _ended(self, kind: type[Job], iteration: Iteration, guard: Guard) -> bool:
        """End the iteration. Returns False if another attempt has taken the job, or it has changed: then that change
        has put a task.
        """
        job, own = guard.job, iteration.own_state
        schedule = schedule_of(job.record, kind.schedule) or kind.schedule
        skipped = iteration.skipped_effects
        line = f"done for ever in an earlier iteration, so not now: {', '.join(skipped)}" if skipped else ""
        if schedule.is_once:
            await guard.write("", log=line, own=("state\tend", own) if own else None)
            return await self._finish(job, "", iteration.result)
        record, now = job.record, self._jobs.now()
        due = schedule.next(from_ms(record.anchor), from_ms(record.last_run), now, zone_of(record.timezone))
        after = replace(record, iteration=record.iteration + 1, due=to_ms(due), begun=False, own=own)
        after = replace(after, children=[child for child in record.children if child not in guard.awaited])
        return (
            await self._jobs.storage.end_iteration(StoredJob(job.id, after, job.version), guard.holder, line) == "ended"
        )

    async def _suspended(self, iteration: Iteration, guard: Guard, attempt: Attempt, wanted: Suspended) -> Result:
        """Put the job off until it is time, or its signal comes."""
        job = guard.job
        after = replace(job.record, due=to_ms(wanted.until), suspended=True, waits_for=wanted.waits_for)
        after = replace(after, reason=wanted.reason)
        suspended = StoredJob(job.id, after, job.version, own=iteration.own_state)
        if await self._jobs.storage.end_iteration(suspended, guard.holder) == "signalled":
            await guard.write("over")
            return Retry(timedelta(0), checkpoint=attempt.checkpoint)
        return None

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
            case Pause() if guard.state is JobState.RUNNING:
                await self._pause(guard.job, fault)
            case Finished() if guard.state is JobState.RUNNING:
                await self._finish(guard.job, str(fault))
            case BaseException():
                result = await self._failed(kind, guard, attempt, fault)
        await guard.write("over")
        return result

    def _interrupted(self, attempt: Attempt) -> Result:
        """Return the result of an interruption: a shutdown gives the rest to another process; a pause or a stop leaves
        nothing to do.
        """
        return Retry(timedelta(0), checkpoint=attempt.checkpoint) if self._is_stopping() else None

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
            await self._jobs.pause(
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

    async def _finish(self, job: StoredJob, reason: str, result: msgspec.Raw = NULL) -> bool:
        """End the job with this iteration. Returns False if it has changed since."""
        try:
            await self._jobs.finish(job.id, reason, expected=job.version, result=result)
        except Refused as refusal:
            log.info("job %s: not ended (%s): %s", job.id.name, reason, refusal.code)
            return False
        return True

    async def _failed(self, kind: type[Job], guard: Guard, attempt: Attempt, fault: BaseException) -> Result:
        """Try again after a pause; in the end the job has failed."""
        job, failures = guard.job, int(attempt.checkpoint or 0) + 1
        text, reason = line_of(reason_for_operator(fault)), line_of(reason_for_user(fault))
        log.warning("job %s: iteration %s failed (%s): %s", job.id.name, job.record.iteration, failures, text)
        if not _is_last(kind, attempt, fault):
            return await _try_again(kind, guard, failures, reason)
        try:
            await self._jobs.fail(job.id, reason, expected=job.version)
        except AdaError as refusal:
            log.info("job %s: not failed: %s", job.id.name, refusal)
        return Done()


def _holder_of(attempt: Attempt) -> str:
    """Return the name of an attempt in the store."""
    return f"{attempt.task.token} {attempt.task.id}"


def _is_last(kind: type[Job], attempt: Attempt, fault: BaseException) -> bool:
    """Return whether the job has failed for good."""
    return isinstance(fault, RollBack) or int(attempt.checkpoint or 0) + 1 >= kind.most_failures


async def _try_again(kind: type[Job], guard: Guard, failures: int, reason: str) -> Result:
    """Return the next try, with a line in the live log: the state of the job is `running` meanwhile."""
    pause = BACKOFF.pause(failures)
    line = f"failure {failures} of {kind.most_failures}, tried again in {pause.total_seconds():.0f} s: {reason}"
    await guard.write("", log=line)
    return Retry(pause, checkpoint=str(failures), error=reason)
