"""Start, pause, resume, stop and find jobs. Each change is one function, which also puts the next task."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from core.errors import Conflict, NotFound, Refused
from core.jobs.kinds import JobKinds
from core.jobs.notices import notice_of
from core.jobs.record import (
    JobId,
    JobRecord,
    Parent,
    ResetPoint,
    StoredJob,
    checked_parameters,
    due_again,
    in_window,
    line_of,
    merged_parameters,
    zone_of,
)
from core.jobs.schedule import Schedule, StoredSchedule
from core.jobs.signals import checked_signal, send
from core.jobs.states import ENDED, Actor, JobState, Verb, check_actor, next_state
from core.jobs.steps import NULL, JobSteps, JobUnits
from core.jobs.storage import JobStorage
from core.jobs.transitions import PERSON_DELETED, ended, repeated, started, stopped, taken_back
from core.jobs.views import JobLog, Wanted, page_of_jobs
from core.model.clock import from_ms, to_ms
from core.redis.store import Store
from core.sentence import Text

_TRIES = 50

Changed = Callable[[JobRecord, datetime], JobRecord]
"""The record after a change, without its new state."""


class Jobs:
    """The jobs of all tenants, as their users, operators and the worker change them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.kinds = JobKinds(store)
        self.storage = JobStorage(store)
        self.units = JobUnits(store)
        self.steps = JobSteps(store, self.storage)
        self.log = JobLog(store)

    async def start(
        self,
        job_id: JobId,
        parameters: Mapping[str, Any] | None = None,
        timezone: str | None = None,
        by: Actor = Actor.USER,
        *,
        at: datetime | None = None,
        schedule: Schedule | None = None,
        parent: Parent | None = None,
    ) -> StoredJob:
        """Start a job, or start it again after it was stopped or has failed; what it has done stays recorded.
        Parameters, time zone and schedule that are not given stay those of before; at the first start they are none,
        UTC and that of the kind. `at`: when the first iteration begins.

        Raises Invalid JOB_KIND_UNKNOWN, PARAMETERS_TOO_LARGE, TIMEZONE_UNKNOWN; Conflict JOB_ALREADY_RUNNING; Forbidden
        JOB_PAUSED_BY_OTHER if a user has stopped it while it was paused by an administrator.
        """
        given = None if parameters is None else checked_parameters(parameters)
        zone_of(timezone or "UTC")
        kind = await self.kinds.find(job_id.kind)
        own = partial(started, kind=kind, parameters=given, timezone=timezone)
        changed = partial(own, at=at, schedule=schedule, parent=parent)
        return await self._change(job_id, Verb.START, by, changed, f"started by {by}")

    async def pause(
        self,
        job_id: JobId,
        by: Actor,
        reason: Text = "",
        until: datetime | None = None,
        *,
        service: str = "",
        expected: int = 0,
        by_job: bool = False,
    ) -> StoredJob:
        """Pause a job: the unit in hand is finished, no other begins. `until`: it then resumes by itself, in its
        window. `service`: for whose sign-in it waits. `expected`: the version that the job must still have; 0: any.
        `by_job`: the job does it by itself, so its user is notified.

        Raises NotFound JOB_NOT_FOUND; Conflict JOB_IN_OTHER_STATE, JOB_HAS_CHANGED; Forbidden JOB_PAUSED_BY_OTHER.
        """
        kind = await self.kinds.schedule(job_id.kind) if until else None

        def paused(record: JobRecord, now: datetime) -> JobRecord:
            resume_at = to_ms(in_window(kind, until, record)) if until else 0
            return replace(record, paused_by=by, reason=line_of(str(reason)), resume_at=resume_at, service=service)

        log = f"paused by {by}{_because(str(reason))}"
        return await self._change(job_id, Verb.PAUSE, by, paused, log, expected, by_job=by_job, said=reason)

    async def resume(self, job_id: JobId, by: Actor) -> StoredJob:
        """Let a paused job go on where it was: an iteration that has begun now, the next one when it is due, both only
        in the window of the job. Raises as `pause`.
        """
        kind = await self.kinds.schedule(job_id.kind)

        def resumed(record: JobRecord, now: datetime) -> JobRecord:
            at = now if record.begun else max(from_ms(record.due), now)
            due = to_ms(in_window(kind, at, record))
            return replace(record, paused_by=None, reason="", resume_at=0, service="", due=due, failures=0)

        return await self._change(job_id, Verb.RESUME, by, resumed, f"resumed by {by}")

    async def resume_after_sign_in(self, tenant: str, user: str, service: str) -> None:
        """Let the jobs of a user go on that were paused because the sign-in to this service had expired. A job that
        another has changed meanwhile stays as it is.
        """
        for job in await self.of_user(tenant, user):
            if job.waits_for_sign_in(service):
                with suppress(Refused):
                    await self.resume(job.id, Actor.SIGN_IN)

    async def waits_for_sign_in(self, tenant: str, user: str, service: str) -> bool:
        """Return whether a job of a user was paused because the sign-in to this service had expired."""
        return any(job.waits_for_sign_in(service) for job in await self.of_user(tenant, user))

    async def of_user(self, tenant: str, user: str) -> Sequence[StoredJob]:
        """Return the jobs of a user, of all kinds, in the order of their names."""
        found: list[StoredJob | None] = []
        for kind in await self.kinds.names():
            names = [JobId(tenant, kind, user), *await self.storage.keyed(tenant, kind, user)]
            found += [await self.storage.read(name) for name in names]
        return [job for job in found if job]

    async def reset(self, job_id: JobId, point: ResetPoint, by: Actor) -> StoredJob:
        """Drop what an iteration has stored from a step on (`steps.plan`), and let it go on from there. Raises NotFound
        JOB_NOT_FOUND, STEP_NOT_FOUND; Conflict JOB_IN_HAND, JOB_TOOK_BACK; Forbidden JOB_PAUSED_BY_OTHER.
        """
        kind = await self.kinds.schedule(job_id.kind)
        await self.steps.check(job_id, point)
        changed = partial(repeated, kind=kind)
        return await self._change(job_id, Verb.RESET, by, changed, f"reset to {point.name} by {by}", point=point)

    async def change(
        self,
        job_id: JobId,
        changes: Mapping[str, Any],
        by: Actor,
        *,
        timezone: str | None = None,
        schedule: Schedule | None = None,
    ) -> StoredJob:
        """Change parameters (None removes one), the time zone and the schedule in whatever state the job is. An
        iteration that has begun ends with what it has stored; the next one works with the changes.

        Raises NotFound JOB_NOT_FOUND; Invalid PARAMETERS_TOO_LARGE, PARAMETERS_MALFORMED, TIMEZONE_UNKNOWN.
        """
        kind, zone = await self.kinds.schedule(job_id.kind), zone_of(timezone) if timezone else None

        def changed(record: JobRecord, now: datetime) -> JobRecord:
            parameters = merged_parameters(record.parameters, changes)
            after = replace(record, parameters=parameters, timezone=timezone or record.timezone)
            if schedule:
                after = replace(after, schedule=StoredSchedule.of(schedule))
            return after if zone is None and schedule is None else due_again(after, kind, now)

        what = [*sorted(changes), *(["time zone"] if timezone else []), *(["schedule"] if schedule else [])]
        return await self._change(job_id, Verb.CHANGE, by, changed, f"{', '.join(what)}: changed by {by}")

    async def signal(
        self, job_id: JobId, name: str, data: Any = None, *, signal_id: str = "", by: Actor = Actor.USER, log: str = ""
    ) -> None:
        """Send a signal to a job; it waits until an iteration takes it. `signal_id`: a repetition with it within a day
        does nothing. `log`: the line of the live log for it.

        Raises NotFound JOB_NOT_FOUND; Invalid SIGNAL_MALFORMED, SIGNAL_TOO_LARGE, SIGNAL_OF_OTHER_TYPE; Conflict
        JOB_IN_OTHER_STATE, TOO_MANY_SIGNALS.
        """
        signal = checked_signal(name, data, signal_id, to_ms(self.now()))
        await self.kinds.check_signal(job_id.kind, name, signal.data)
        for _ in range(_TRIES):
            if await send(self.storage, await self.find(job_id), signal, log or f"signal {name} by {by}"):
                return
        raise _changes_too_often()

    async def stop(
        self,
        job_id: JobId,
        by: Actor,
        reason: str = "",
        *,
        expected: int = 0,
        abandon: bool = False,
        keeps_failed: bool = False,
    ) -> StoredJob:
        """End a job; it can be started again, after the pause of an administrator only by one. If its iteration has
        begun and names compensations, it is `stopping` until these have taken back what was done, unless `abandon`.
        `keeps_failed`: a job that has failed stays so, with its reason. `expected` and what it raises: as `pause`.
        """
        verb = Verb.ABANDON if abandon else Verb.STOP
        log = f"{'abandoned by' if abandon else 'stopped by'} {by}{_because(reason)}"
        changed = partial(stopped, by=by, reason=reason, abandon=abandon, keeps_failed=keeps_failed)
        return await self._change(job_id, verb, by, changed, log, expected)

    async def compensated(self, job_id: JobId, *, expected: int) -> StoredJob:
        """End a job whose compensations have taken back what its iteration had done. Raises as `pause`."""
        log = "what was done is taken back; stopped"
        job = await self._change(job_id, Verb.COMPENSATE, Actor.ADMIN, taken_back, log, expected)
        if job.record.reason == PERSON_DELETED:
            await self.storage.drop_log(job.id)
        return job

    async def stop_all(self, tenant: str, user: str, by: Actor, reason: str) -> None:
        """End all jobs of a user that have not ended."""
        for job in await self.of_user(tenant, user):
            if job.record.state not in (JobState.STOPPED, JobState.FINISHED, JobState.STOPPING):
                with suppress(Conflict):  # another was faster
                    await self.stop(job.id, by, reason)

    async def forget(self, tenant: str, user: str) -> None:
        """Delete the parameters and the logs of a user's jobs that have ended. One that was stopped for
        `PERSON_DELETED` and still takes back what it did loses its own when it has ended.
        """
        for job in await self.of_user(tenant, user):
            if job.record.state in ENDED:
                if job.record.parameters:
                    await self.change(job.id, dict.fromkeys(job.record.parameters), Actor.ADMIN)
                await self.storage.drop_log(job.id)

    async def fail(self, job_id: JobId, reason: Text, *, expected: int = 0) -> StoredJob:
        """End a job that cannot go on. `expected` and what it raises: as `pause`."""
        changed = partial(ended, by=Actor.ADMIN, reason=str(reason), result=NULL)
        log = f"failed: {line_of(str(reason))}"
        return await self._change(job_id, Verb.FAIL, Actor.ADMIN, changed, log, expected, said=reason)

    async def finish(self, job_id: JobId, reason: str, *, expected: int = 0, result: msgspec.Raw = NULL) -> StoredJob:
        """End a job that has reached its end, with this result. `expected` and what it raises: as `pause`."""
        log, changed = f"finished{_because(reason)}", partial(ended, by=Actor.ADMIN, reason=reason, result=result)
        return await self._change(job_id, Verb.FINISH, Actor.ADMIN, changed, log, expected)

    async def find(self, job_id: JobId) -> StoredJob:
        """Return a job. Raises NotFound JOB_NOT_FOUND."""
        job = await self.storage.read(job_id)
        if job is None:
            raise NotFound("JOB_NOT_FOUND", "There is no such job.")
        return job

    async def list(
        self, tenant: str, wanted: Wanted | None = None, cursor: str = "", limit: int = 100
    ) -> tuple[list[StoredJob], str]:
        """Return (jobs, cursor of the next page or ""), those of a shard in the order of their first start.

        A page with a filter may have fewer than `limit`. Raises Invalid CURSOR_MALFORMED.
        """
        return await page_of_jobs(self.storage, self._store.shards, tenant, wanted or Wanted(), cursor, limit)

    async def _change(
        self,
        job_id: JobId,
        wanted: Verb,
        by: Actor,
        changed: Changed,
        log: str,
        expected: int = 0,
        *,
        by_job: bool = False,
        point: ResetPoint | None = None,
        said: Text = "",
    ) -> StoredJob:
        """Change the state by the table. Another change at the same moment is applied first, then this one is tried on
        its result.
        """
        for _ in range(_TRIES):
            job = await self.storage.read(job_id)
            if job is None and wanted is not Verb.START:
                raise NotFound("JOB_NOT_FOUND", "There is no such job.")
            if expected and job and job.version != expected:
                raise Conflict("JOB_HAS_CHANGED", "The job was changed by another.")
            verb = _verb_now(wanted, job)
            state = next_state(verb, job.record.state if job else None)
            if job and wanted not in (Verb.STOP, Verb.ABANDON, Verb.CHANGE):
                check_actor(by, job.record.paused_by)
            record, now = (job.record if job else JobRecord(state)), self.now()
            if job and wanted is Verb.START:
                record = replace(record, own=job.own)
            after = replace(changed(record, now), state=state, generation=record.generation + 1)
            if job:
                after = replace(after, changed=to_ms(now))
            changing = StoredJob(job_id, after, job.version if job else 0, own=job.own if job else None)
            notice = notice_of(verb, changing, by_job=by_job, said=said)
            if saved := await self.storage.save(changing, log, notice=notice, point=point):
                return saved
        raise _changes_too_often()

    def now(self) -> datetime:
        """Return the current time of the server, aware."""
        return self._store.now()


def _verb_now(wanted: Verb, job: StoredJob | None) -> Verb:
    return Verb.TAKE_BACK if wanted is Verb.STOP and job and job.record.takes_back else wanted


def _changes_too_often() -> Conflict:
    return Conflict("JOB_CHANGES_TOO_OFTEN", "The job is being changed by others all the time. Try again.")


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
