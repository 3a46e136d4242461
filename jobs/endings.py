"""Endings of an attempt at an iteration: the next iteration, its continuation, another try, a pause, or the end."""

import logging
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from core.errors import AdaError, Refused
from core.jobs import JobRecord, Jobs, JobState, StoredJob
from core.jobs.notices import Notice, keeps_failing
from core.jobs.record import OwnState, line_of, schedule_of, zone_of
from core.jobs.units import NULL
from core.model.clock import from_ms, to_ms
from core.queue import AlreadySettled, Attempt, Done, Result, Retry
from core.sentence import Text
from jobs.failures import AfterFailure, Failure, most_of, reason_for_operator, reason_for_user
from jobs.iteration import Iteration
from jobs.job import Job
from jobs.recording.guard import Guard
from jobs.signals import Pause, Suspended

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
