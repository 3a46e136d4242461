"""Makes one attempt at an iteration of a job.

    begin ─▶ Job.run ─┬▶ it returns: the next iteration's task, or the end of the job, in the same step
                      ├▶ it sleeps or waits: the task of its continuation
                      └▶ it raises: paused, finished, failed, tried again, or the next iteration

Guarantee: an iteration ends once; an attempt that does not hold the job any more changes nothing. The code of the job
runs in a task of its own: in that of the queue's worker its KeyboardInterrupt, SystemExit or GeneratorExit would end
the process.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import timedelta

from msgspec.structs import replace

from core.errors import AdaError, Refused
from core.jobs import JobRecord, Jobs, JobState, StoredJob
from core.model.clock import to_ms
from core.queue import AlreadySettled, Attempt, Result, Retry
from core.sentence import sentence
from jobs.code_names import left_to_others, names_compensations
from jobs.endings import LEAST, AfterFailure, Endings, Failure, failure_of, failure_of_compensation
from jobs.external_services import Outside
from jobs.job import Iteration, Job
from jobs.limits import WAITS, Slots
from jobs.recording.effects import JobEffects
from jobs.recording.guard import Guard, stored_form
from jobs.recovery import Losses
from jobs.signals import Finished, Interrupted, Lost, Pause, RollBack, SelfCancelled, Suspended, TookTooLong

JOB: ContextVar[str] = ContextVar("job", default="")
"""The job whose code runs at this moment, also in tasks that it has started."""

LARGEST_RETURNED = 60 * 1024
"""Bytes of JSON of what `run` returns; a parent gets it as a signal."""

_CLEANUP = 5.0
"""Seconds that a job has to clean up after it was cancelled."""


async def run_job(kind: type[Job], iteration: Iteration, guard: Guard) -> BaseException | None:
    """Return what the job has raised, or why the attempt is over; TookTooLong if it takes longer than it may. When this
    returns or is cancelled, the job has ended, or can begin nothing else.
    """
    running = asyncio.create_task(_raised_by(kind, iteration, guard.job.id.name))
    try:
        done, _ = await asyncio.wait({running}, timeout=kind.max_runtime.total_seconds())
    except asyncio.CancelledError:
        await _end(running, guard)
        raise
    if done:
        return guard.ending or running.result()
    await _end(running, guard)
    return TookTooLong(sentence("job_took_too_long", limit=str(kind.max_runtime)))


async def _raised_by(kind: type[Job], iteration: Iteration, name: str) -> BaseException | None:
    JOB.set(name)
    try:
        iteration.result = stored_form("run", await kind().run(iteration), LARGEST_RETURNED)
    except asyncio.CancelledError:  # if this process has cancelled it, the result is not used
        return SelfCancelled("the iteration was cancelled by its own code")
    except BaseException as fault:  # noqa: BLE001 - whatever a job raises is its failure
        return fault
    return None


async def _end(running: "asyncio.Task[BaseException | None]", guard: Guard) -> None:
    guard.close()
    running.cancel()
    await asyncio.wait({running}, timeout=_CLEANUP)
    if not running.done():
        log.error("job %s: its code goes on after it was cancelled; it begins no effect", guard.job.id.name)


log = logging.getLogger(__name__)

_WAITS_FOR = "waits for "
"""So the reason of a job begins that waits for a process or a slot."""

_LEFT_FOR = timedelta(seconds=10)
"""A process with other code may take an iteration that this one has left."""


class Attempts:
    """Makes the attempts of this process. `is_stopping`: whether the process was asked to end."""

    def __init__(
        self, jobs: Jobs, losses: Losses, outside: Outside, slots: Slots, is_stopping: Callable[[], bool]
    ) -> None:
        self._jobs = jobs
        self._slots = slots
        self._losses = losses
        self._outside = outside
        self._is_stopping = is_stopping
        self._endings = Endings(jobs)

    async def make(self, kind: type[Job], job: StoredJob, stored: Collection[str], attempt: Attempt) -> Result:
        """Make an attempt within the limits of its kind. `stored`: the names of what the iteration has stored. Returns
        what becomes of its task.
        """
        task, holder = attempt.task, _holder_of(attempt)
        if reason := await self._slots.take(kind.limits, job, holder, task):
            return await self._waits(job, reason)
        try:
            result = await self._begin(kind, job, stored, attempt, holder)
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

    async def _begin(
        self, kind: type[Job], job: StoredJob, stored: Collection[str], attempt: Attempt, holder: str
    ) -> Result:
        if job.record.begun and (reason := left_to_others(kind, job.record, stored)):
            return await self._left(job, reason, attempt)
        is_again = job.record.begun and not job.record.suspended
        line = f"iteration {job.record.iteration + 1} goes on" if is_again else ""
        beginning = StoredJob(job.id, self._begun(kind, job.record), job.version)
        taken = await self._jobs.storage.begin_iteration(beginning, holder, line)
        if taken is None:  # it was changed at this moment
            return Retry(timedelta(0))
        begun, steps = taken
        guard = Guard(
            self._jobs.storage,
            begun,
            holder,
            lambda: self._must_stop(attempt),
            lambda: self._holds(holder, attempt),
        )
        self._losses.begin(guard)
        return await self._run(kind, guard, steps, attempt)

    async def _run(self, kind: type[Job], guard: Guard, steps: Mapping[str, str], attempt: Attempt) -> Result:
        try:
            iteration = Iteration(guard, steps, self._outside, self._jobs, kind.state_class(), kind.limits)
            fault = await run_job(kind, iteration, guard)
            if guard.is_replay:
                return await self._taken_back(kind, iteration, guard, attempt, fault)
            if isinstance(fault, Suspended):
                return await self._endings.suspended(iteration, guard, attempt, fault)
            if fault is None and (end := await self._endings.ended(kind, iteration, guard, attempt)):
                return end
            failure = await self._compensated(kind, iteration, guard, fault)
        except asyncio.CancelledError:
            if self._is_stopping():
                await guard.end()
            raise
        except AdaError as refusal:  # its state cannot be read or stored
            failure = self._failure(kind, guard, refusal)
        return await self._broken_off(kind, guard, attempt, failure)

    def _failure(self, kind: type[Job], guard: Guard, fault: BaseException) -> Failure:
        return failure_of(kind, guard.job.record, fault, self._jobs.now())

    def _failure_of_compensation(self, kind: type[Job], guard: Guard, fault: BaseException) -> Failure:
        return failure_of_compensation(kind, guard.job.record, fault, self._jobs.now())

    async def _compensated(
        self, kind: type[Job], iteration: Iteration, guard: Guard, fault: BaseException | None
    ) -> Failure | None:
        """Take back what an iteration has done that is not tried again. Returns why the iteration ends; if that fails
        itself, it is tried again as any failure.
        """
        if fault is None:
            return None
        failure = self._failure(kind, guard, fault)
        is_failure = isinstance(fault, Exception) and not isinstance(fault, Pause | Finished)
        if is_failure and failure.verdict is not AfterFailure.AGAIN:
            try:
                await iteration.compensations.run(JobEffects(guard, self._jobs.now))
            except (Exception, Interrupted, Lost) as other:  # noqa: BLE001 - the code of a job
                return self._failure_of_compensation(kind, guard, other)
        return failure

    async def _taken_back(
        self, kind: type[Job], iteration: Iteration, guard: Guard, attempt: Attempt, fault: BaseException | None
    ) -> Result:
        """Take back what a job has done that a person has stopped. `fault`: what has ended the replay; a failure is
        tried again, so that nothing is missed, and at the last time what is known by then is taken back.
        """
        ends = fault is None or isinstance(fault, Interrupted | RollBack | Finished) or _is_last(kind, guard)
        if self._is_stopping() or isinstance(fault, Lost) or not ends:
            failure = self._failure_of_compensation(kind, guard, Interrupted() if fault is None else fault)
            return await self._broken_off(kind, guard, attempt, failure)
        after = guard.after_replay()
        try:
            await iteration.compensations.run(JobEffects(after, self._jobs.now))
        except (Exception, Interrupted, Lost) as other:  # noqa: BLE001 - the code of a job
            return await self._broken_off(kind, after, attempt, self._failure_of_compensation(kind, guard, other))
        with suppress(Refused):  # it was changed: that has put a task
            await self._jobs.compensated(guard.job.id, expected=guard.job.version)
        await after.end()
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
        return Retry(_LEFT_FOR)

    def _begun(self, kind: type[Job], record: JobRecord) -> JobRecord:
        if record.state is JobState.STOPPING:
            return replace(record, reason="" if record.reason.startswith(_WAITS_FOR) else record.reason)
        runs = replace(record, state=JobState.RUNNING, paused_by=None, reason="", service="", resume_at=0)
        last_run = record.last_run if record.suspended else to_ms(self._jobs.now())
        runs = replace(runs, code=record.code if record.begun else kind.version, compensates=names_compensations(kind))
        return replace(runs, begun=True, suspended=False, waits_for=[], last_run=last_run)

    async def _broken_off(self, kind: type[Job], guard: Guard, attempt: Attempt, failure: Failure | None) -> Result:
        """Return the result of an iteration that has not reached its end. An attempt that has lost its lease changes
        nothing. `failure` None: the job has changed at its end.
        """
        result: Result = None
        match failure and failure.fault:
            case Lost():
                return self._lost(guard)
            case Interrupted():
                result = self._interrupted()
            case Pause() as pause if guard.state is JobState.RUNNING:
                await self._endings.pause(guard.job, pause)
            case Finished() as finished if guard.state is JobState.RUNNING:
                await self._endings.finish(guard.job, str(finished))
            case BaseException() if failure:
                result = await self._endings.failed(kind, guard, attempt, failure)
        if not isinstance(result, AlreadySettled):
            await guard.end()
        return result

    def _interrupted(self) -> Result:
        """Return the result of an interruption: a shutdown gives the rest to another process; a pause or a stop leaves
        nothing to do.
        """
        return Retry(timedelta(0)) if self._is_stopping() else None

    def _lost(self, guard: Guard) -> Result:
        """Return the result of a lost lease. It has no effect if another attempt has the task; if none has it yet, the
        iteration goes on at once.
        """
        job = guard.job
        log.info("job %s: the attempt of iteration %s has lost its lease", job.id.name, job.record.iteration + 1)
        return Retry(timedelta(0))


def _holder_of(attempt: Attempt) -> str:
    """Return the name of an attempt in the store."""
    return f"{attempt.task.token} {attempt.task.id}"


def _is_last(kind: type[Job], guard: Guard) -> bool:
    """Return whether the replay of a stopped job is not tried again."""
    return guard.job.record.failures + 1 >= min(LEAST, kind.most_failures or LEAST)
