"""Endings of an attempt at an iteration: the next iteration, its continuation, another try, a pause, or the end.

The text of an exception may hold what the user must not see: the address of a call with its token, a row of a table. So
only errors that are written for people are shown with their text; of all others their name and the line of the job that
was carried out. The log of the process has the whole text, for the operator.

The number of failures in a row is in the record of the job, so that neither a sleep nor a crash forgets it.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from pathlib import Path
from traceback import extract_tb

import msgspec
from msgspec.structs import replace

from core.errors import AdaError, Refused, StoreError
from core.jobs import JobRecord, Jobs, JobState, StoredJob
from core.jobs.notices import Notice, keeps_failing
from core.jobs.record import OwnState, line_of, schedule_of, zone_of
from core.jobs.steps import NULL
from core.model.clock import Backoff, from_ms, to_ms
from core.queue import AlreadySettled, Attempt, Done, Result, Retry
from core.sentence import Sentence, Text, sentence
from jobs.job import Iteration, Job
from jobs.recording.guard import Guard
from jobs.signals import Blocked, Pause, RollBack, Suspended, Unclear

OWN_FOLDERS = (str(Path(__file__).parent), str(Path(__file__).parents[1] / "core"))


def reason_for_user(fault: BaseException) -> Text:
    """Return the reason of a fault, for example `the iteration took longer than 1:00:00`, or `KeyError in hunting.py,
    line 12`.
    """
    if isinstance(fault, AdaError) and not isinstance(fault, StoreError):
        said = fault.args[0] if fault.args else ""
        return said if isinstance(said, Sentence) else str(fault) or type(fault).__name__
    what = str(fault) if isinstance(fault, Blocked) else type(fault).__name__
    frames = [frame for frame in extract_tb(fault.__traceback__) if not frame.filename.startswith(OWN_FOLDERS)]
    in_job = [frame for frame in frames if frame.filename == frames[0].filename]
    if not in_job:
        return what
    return sentence("job_error", error=what, file=Path(in_job[-1].filename).name, line=in_job[-1].lineno or 0)


def reason_for_operator(fault: BaseException) -> str:
    """Return the name of the error and its text, if it can be read: that of a foreign error may itself raise."""
    name = type(fault).__name__
    try:
        return f"{name}: {fault}" if str(fault) else name
    except Exception:  # noqa: BLE001 - foreign code
        return name


BACKOFF = Backoff(timedelta(seconds=2), timedelta(hours=1))

MOST = 40
"""Failures in a row, about a day, after which a job without a period has failed."""

LEAST = 5
"""So often an iteration is tried before the next one takes its place."""

REPORTED_AFTER = timedelta(days=1)
"""The user of a job that goes on is notified once when its failures in a row have lasted so long."""


class AfterFailure(Enum):
    """The consequence of a failure. `NEXT`: the iteration is given up, and the next one begins when it is due."""

    AGAIN = auto()
    NEXT = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Failure:
    """`number`: how many failures in a row this one makes. `at`: of the next try, or of the next iteration. `reports`:
    whether the user is notified now that the job keeps failing; `report_at`: as in the record of the job from now on.
    """

    fault: BaseException
    number: int
    at: datetime
    verdict: AfterFailure
    reports: bool = False
    report_at: int = 0


def failure_of(kind: type[Job], record: JobRecord, fault: BaseException, now: datetime) -> Failure:
    """Return what follows after a failure of `run`."""
    number, schedule, zone = (
        record.failures + 1,
        schedule_of(record, kind.schedule) or kind.schedule,
        zone_of(record.timezone),
    )
    again = schedule.in_window(now + BACKOFF.pause(number), zone)
    most = most_of(kind, is_once=schedule.is_once)
    if isinstance(fault, Unclear):  # only a person can end that
        most = min(most or LEAST, LEAST)
    if isinstance(fault, RollBack) or (most and number >= most):
        return Failure(fault, number, now, AfterFailure.FAILED)
    if schedule.is_once and not kind.most_failures:  # it ends in about a day, and that is reported
        return Failure(fault, number, again, AfterFailure.AGAIN)
    report_at = record.report_at if record.failures else to_ms(now + REPORTED_AFTER)
    reports = 0 < report_at <= to_ms(now)
    report = (reports, 0 if reports else report_at)
    if not schedule.is_once and number >= LEAST:
        following = schedule.next(from_ms(record.anchor), from_ms(record.last_run), now, zone)
        if again >= following:
            return Failure(fault, number, following, AfterFailure.NEXT, *report)
    return Failure(fault, number, again, AfterFailure.AGAIN, *report)


def failure_of_compensation(kind: type[Job], record: JobRecord, fault: BaseException, now: datetime) -> Failure:
    """Return what follows after a failure while what was done is taken back: the job never goes on without that."""
    number = record.failures + 1
    is_last = isinstance(fault, RollBack) or number >= (kind.most_failures or MOST + LEAST)
    return Failure(fault, number, now + BACKOFF.pause(number), AfterFailure.FAILED if is_last else AfterFailure.AGAIN)


def most_of(kind: type[Job], *, is_once: bool) -> int | None:
    """Return after how many failures in a row the job has failed; None: it goes on with its next iteration."""
    return kind.most_failures or (MOST if is_once else None)


log = logging.getLogger(__name__)


class Endings:
    """Stores the end of an attempt, and says what becomes of its task."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def ended(self, kind: type[Job], iteration: Iteration, guard: Guard, attempt: Attempt) -> Result:
        """End the iteration. Returns None if another attempt has taken the job, or it has changed: then that change
        has put a task.
        """
        job, own = guard.job, iteration.own_state
        schedule = schedule_of(job.record, kind.schedule) or kind.schedule
        skipped = iteration.skipped_effects
        line = f"done for ever in an earlier iteration, so not now: {', '.join(skipped)}" if skipped else ""
        if schedule.is_once:
            await guard.write_end(line, own)
            return Done() if await self.finish(job, "", iteration.result) else None
        record, now = job.record, self._jobs.now()
        due = schedule.next(from_ms(record.anchor), from_ms(record.last_run), now, zone_of(record.timezone))
        is_ended = await self._end(attempt, guard, _following(guard, due, own), line) == "ended"
        return AlreadySettled() if is_ended else None

    async def _end(
        self,
        attempt: Attempt,
        guard: Guard,
        after: JobRecord,
        line: str = "",
        *,
        own: OwnState | None = None,
        notice: Notice | None = None,
    ) -> str:
        """End or suspend the iteration, and settle its task. Returns as `JobStorage.end_iteration`."""
        attempt.settles = True
        following = StoredJob(guard.job.id, after, guard.job.version, own=own)
        return await self._jobs.storage.end_iteration(following, guard.holder, line, notice)

    async def suspended(self, iteration: Iteration, guard: Guard, attempt: Attempt, wanted: Suspended) -> Result:
        """Put the job off until it is time, or its signal comes."""
        job = guard.job
        after = replace(job.record, due=to_ms(wanted.until), suspended=True, waits_for=wanted.waits_for)
        after = replace(after, reason=wanted.reason, failures=0 if guard.has_advanced else job.record.failures)
        match await self._end(attempt, guard, after, own=iteration.own_state):
            case "ended":
                return AlreadySettled()
            case "signalled":
                await guard.end()
                return Retry(timedelta(0))
        return None

    async def pause(self, job: StoredJob, pause: Pause) -> None:
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

    async def finish(self, job: StoredJob, reason: str, result: msgspec.Raw = NULL) -> bool:
        """End the job with this iteration. Returns False if it has changed since."""
        try:
            await self._jobs.finish(job.id, reason, expected=job.version, result=result)
        except Refused as refusal:
            log.info("job %s: not ended (%s): %s", job.id.name, reason, refusal.code)
            return False
        return True

    async def failed(self, kind: type[Job], guard: Guard, attempt: Attempt, failure: Failure) -> Result:
        """Try again after a pause, go on with the next iteration, or end the job: it has failed."""
        job, number = guard.job, failure.number
        text, said = line_of(reason_for_operator(failure.fault)), reason_for_user(failure.fault)
        iteration = job.record.iteration + 1
        log.warning("job %s: iteration %s: failure %s in a row: %s", job.id.name, iteration, number, text)
        match failure.verdict:
            case AfterFailure.AGAIN:
                return await self._try_again(kind, guard, failure, said)
            case AfterFailure.NEXT:
                return await self._give_up(guard, attempt, failure, said)
            case AfterFailure.FAILED:
                await self._fail(job, said)
        return Done()

    async def _try_again(self, kind: type[Job], guard: Guard, failure: Failure, said: Text) -> Result:
        """Return the next try. The job says why it waits; its state stays."""
        job, pause, reason = guard.job, failure.at - self._jobs.now(), line_of(str(said))
        most = most_of(kind, is_once=(schedule_of(job.record, kind.schedule) or kind.schedule).is_once)
        count = f"failure {failure.number} of {most}" if most else f"failure {failure.number}"
        line = f"{count}, tried again in {pause.total_seconds():.0f} s: {reason}"
        waits = replace(job.record, failures=failure.number, due=to_ms(failure.at), report_at=failure.report_at)
        if job.record.state is JobState.RUNNING:
            waits = replace(waits, reason=line_of(line))
        notice = self._notice_of(job, failure, said)
        await self._jobs.storage.save(StoredJob(job.id, waits, job.version), line, puts_task=False, notice=notice)
        return Retry(pause, error=reason)

    async def _give_up(self, guard: Guard, attempt: Attempt, failure: Failure, said: Text) -> Result:
        """Go on with the next iteration. What the items have stored stays, with the state of the job's own."""
        job, reason = guard.job, line_of(str(said))
        stored = await self._jobs.storage.read(job.id)
        n, number = failure.number, job.record.iteration + 1
        at = f"{failure.at.astimezone(zone_of(job.record.timezone)):%Y-%m-%d at %H:%M:%S}"
        line = f"failure {n}, iteration {number} is given up; the next one is due on {at}: {reason}"
        after = _following(guard, failure.at, stored.own if stored else None)
        after = replace(after, failures=failure.number, reason=line_of(line), report_at=failure.report_at)
        end = await self._end(attempt, guard, after, line, notice=self._notice_of(job, failure, said))
        return AlreadySettled() if end == "ended" else Done()

    def _notice_of(self, job: StoredJob, failure: Failure, said: Text) -> Notice | None:
        return keeps_failing(job, said, to_ms(self._jobs.now())) if failure.reports else None

    async def _fail(self, job: StoredJob, said: Text) -> None:
        try:
            await self._jobs.fail(job.id, said, expected=job.version)
        except AdaError as refusal:
            log.info("job %s: not failed: %s", job.id.name, refusal)


def _following(guard: Guard, due: datetime, own: OwnState | None) -> JobRecord:
    """Return the record with the next iteration. Children whose end is not known yet stay."""
    record = guard.job.record
    after = replace(record, iteration=record.iteration + 1, due=to_ms(due), begun=False, failures=0, own=own)
    return replace(after, children=[child for child in record.children if child not in guard.awaited])
