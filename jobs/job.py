"""A job and its iteration, for the developer of the job: a class with a name, a schedule, and `run`.

    class Hunt(Job):
        name = "hunt"
        schedule = Schedule(timedelta(minutes=30), DailyWindow(time(9), time(20)))

        async def run(self, iteration: Iteration) -> Any:
            found = await iteration.step("search", search, iteration.parameters["query"])
            await iteration.each(found, self.apply, key=lambda vacancy: vacancy["id"])

Guarantees: `run` is called again for the same iteration after a crash, a shutdown or a failure. A result that was
stored is returned again and not computed again, and is the same as at the first run; a unit that was recorded is never
begun again, in this iteration and in later ones; only the attempt that has taken the job writes. Before each unit and
effect, and after each step, the state of the job is known (U-11). Guide: docs/jobs.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

import msgspec

from core.errors import Invalid
from core.jobs import Jobs
from core.jobs.record import OwnState, zone_of
from core.jobs.schedule import Schedule
from core.jobs.steps import NULL, STEP, UnitRecord
from core.model.clock import to_ms
from core.queue.checks import check_spans, check_type
from jobs.external_services import Outside
from jobs.limits import Limit, Turns
from jobs.recording.effects import Call, Calls, Compensations, Effect, Exists, JobEffects, RetryPolicy
from jobs.recording.guard import (
    UNIT,
    Guard,
    Item,
    LiveLines,
    StepNames,
    line_of,
    pages,
    record_of,
    returned_form,
    stored_form,
    units_of,
)
from jobs.recording.own_state import NO_STATE, StateClass
from jobs.recording.waiting import Branches, Child, Children, JobWaiting
from jobs.signals import Throttled
from providers.models import Prompt


class Iteration:
    """`number` counts from 0. `state`: of the class that the job declares; it is stored when the iteration ends, and
    with each item of `each`.
    """

    def __init__(
        self,
        guard: Guard,
        steps: Mapping[str, str],
        outside: Outside,
        jobs: Jobs,
        state_class: StateClass = NO_STATE,
        limits: Sequence[Limit] = (),
    ) -> None:
        self._job = guard.job
        self.user = self._job.id.user
        self.tenant = self._job.id.tenant
        self.number = self._job.record.iteration
        self.parameters: Mapping[str, Any] = self._job.record.parameters
        self._guard = guard
        self._steps = steps
        self._outside = outside
        self._now = now = jobs.now
        self.result: msgspec.Raw = NULL
        self._names = StepNames()
        self._effects = JobEffects(guard, now)
        self._waiting = JobWaiting(guard, steps, now)
        self._calls = Calls(guard, steps, now)
        self._turns = Turns(outside.store, limits, guard, jobs)
        self._branches = Branches(guard)
        self._children = Children(guard, steps, self._waiting, jobs)
        self.compensations = Compensations()
        self._lines = LiveLines(guard, steps)
        self._state_class = state_class
        self._snapshots = 0  # calls of `each`
        self.state: Any = state_class.load(self._job.record.own)

    async def step(
        self,
        name: str,
        call: Call,
        *arguments: Any,
        returns: Any = Any,
        retry: RetryPolicy | None = None,
        timeout: timedelta | None = None,
        heartbeat: timedelta | None = None,
        limit: str = "",
    ) -> Any:
        """Return the result of `call(*arguments)`, stored under `name`: a repeated iteration gets it without a call.

        A result is what JSON makes of it, also at the first run: a tuple is a list, a dataclass a dict, a datetime a
        text. `returns`: a type to which that is converted. `retry`: after which errors the call is made again; the
        pauses need no process, as `sleep`. `timeout`: a call that takes longer raises TimeoutError; so does one that
        calls `heartbeat` less often than the limit of that name. `limit`: that of the class whose `rate` the call
        keeps; if its turn is later than in a second, the iteration sleeps.

        Raises what the call raises; Invalid RESULT_NOT_JSON, RESULT_TOO_LARGE, RESULT_OF_OTHER_TYPE, NAME_USED_TWICE,
        NAME_MALFORMED, LIMIT_UNKNOWN.
        """
        with self._names.used("step", name):
            known = self._steps.get(f"{STEP}{name}")
            if known is not None:
                return returned_form(name, msgspec.Raw(known.encode()), returns)
            self._guard.check()
            limited = self._calls.limited(
                f"{STEP}{name}", self._outside.call(self._job, name, call), timeout, heartbeat
            )
            await self._turns.take(limit)
            stored = stored_form(name, await self._retried(f"{STEP}{name}", retry, limit, limited(*arguments)))
            result = returned_form(name, stored, returns)
            await self._guard.record_step(f"{STEP}{name}", bytes(stored).decode())
            return result

    async def each(
        self,
        items: Iterable[Item],
        handle: Callable[[Item], Awaitable[Any]],
        *,
        key: Callable[[Item], Any],
        name: str = "",
    ) -> int:
        """Handle the items one by one, those that are not recorded yet. Returns how many were handled in this
        iteration, also before a crash.

        `key`: what names an item for ever, among those of an `each` of this `name`. A handler that raises UnitFailed or
        Unclear records that, also in the live log; anything else ends the iteration, which is tried again. The live log
        says how many were handled before. Raises Invalid NAME_USED_TWICE if another handler has the name;
        NAME_MALFORMED.
        """
        self._names.handles(name, handle)
        units, handled, skipped, place = units_of(items, key, name), 0, 0, self._restored()
        for page in pages(units):
            known = await self._guard.units([unit for unit, _ in page])
            await self._guard.check_job()
            for (unit, item), recorded in zip(page, known, strict=True):
                if recorded is None:
                    self._guard.check()
                    await self._handle(unit, handle, item, place)
                else:
                    skipped += 1
                handled += recorded is None or msgspec.json.decode(recorded, type=UnitRecord).iteration == self.number
        if skipped:
            await self.log(f"{skipped} of {len(units)} items were handled before, and skipped")
        return handled

    async def effect(
        self,
        name: str,
        call: Call,
        *arguments: Any,
        exists: Exists | None = None,
        per_iteration: bool = False,
        idempotent_for: timedelta | None = None,
        idempotency_key: str = "",
        returns: Any = Any,
        retry: RetryPolicy | None = None,
        timeout: timedelta | None = None,
        heartbeat: timedelta | None = None,
        limit: str = "",
    ) -> Any:
        """Do something outside once, for ever, or `per_iteration`: the intent is stored before the call, its result
        after it. It begins only while the job runs and the process is not stopping.

        `idempotent_for`: so long the service remembers the keyword argument `idempotency_key` of the call, and does
        nothing at a second call with it. After a crash between intent and result, or if the call raises, the call is
        repeated with the same key in this time. Otherwise `exists` asks the service: True or Found, it took place;
        False, it is done now; None, or no `exists`: raises Unclear, now and in every repetition, until an operator
        resolves it. A call that raises NotDone leaves no intent. `idempotency_key`: in place of one of its own.

        Results, limits and errors: as `step`, and `retry` makes a call again only as far as this allows it;
        RESULT_NOT_STORED if it took place and its result could not be stored.
        """
        with self._names.used("effect", name):
            limited = self._calls.limited(
                f"effect:{name}", self._outside.call(self._job, name, call), timeout, heartbeat
            )
            how = (exists, per_iteration, idempotent_for, returns, idempotency_key)
            doing = self._effects.do(Effect(name, limited, arguments, *how, turn=lambda: self._turns.take(limit)))
            return await self._retried(f"effect:{name}", retry, limit, doing)

    async def gather(self, *branches: Awaitable[Any], at_once: int = 10) -> list[Any]:
        """Return the results of these calls of `step`, `effect` or functions of the job. At most `at_once` run at the
        same time. One that sleeps or waits does not hold up the others. All have ended before the first error is
        raised.
        """
        return await self._branches.gather(branches, at_once)

    async def heartbeat(self, progress: Any = None) -> None:
        """Store how far the call of a step or an effect has come, and check that the job goes on; called in it. Raises
        Invalid HEARTBEAT_OUTSIDE, RESULT_NOT_JSON, RESULT_TOO_LARGE.
        """
        await self._calls.heartbeat(progress)

    @property
    def progress(self) -> Any:
        """The value that the last heartbeat of this call stored, also in an earlier attempt; None without one."""
        return self._calls.progress()

    async def access_token(self, service: str) -> str:
        """Return the user's token for an outside service, refreshed if needed. Without a valid sign-in the job is
        paused until the user has signed in.
        """
        return await self._outside.access_token(self._job, service)

    async def complete(self, user: str, system: str = "", *, max_tokens: int | None = None) -> str:
        """Return the answer of the language model. The same question has the same answer for a day. If the user's
        budget of the day is used up, the job is paused until midnight. Raises providers.models.AiError.
        """
        return await self._outside.complete(self._job, Prompt(user, system, max_tokens=max_tokens), self._now())

    async def change_parameters(self, **changes: Any) -> None:
        """Change parameters of the job, for this iteration and all later ones, so that the user can see and change what
        the job has chosen; None removes one. If another has changed the job at this moment, the iteration is repeated
        with that. Raises Invalid PARAMETERS_TOO_LARGE, PARAMETERS_MALFORMED.
        """
        self.parameters = await self._guard.change_parameters(changes)

    async def log(self, text: str) -> None:
        """Add a line to the live log; an iteration that is repeated does not add it again."""
        await self._lines.write(text)

    async def sleep(self, time: timedelta) -> None:
        """Sleep for this time, or until the job is stopped, without a process: the iteration is repeated then, and goes
        on after this line. A deploy or a crash does not change when it wakes.
        """
        check_spans("sleep", time=time)
        await self._waiting.sleep_until(self.now() + time)

    async def sleep_until(self, at: datetime) -> None:
        """Sleep until this moment, as `sleep`. A time without a zone is in that of the user."""
        check_type("sleep", "end", at, datetime)
        await self._waiting.sleep_until(at if at.tzinfo else at.replace(tzinfo=zone_of(self._job.record.timezone)))

    async def wait(self, signal: str, *, timeout: timedelta | None = None, returns: Any = Any) -> Any:
        """Return the data of the next signal with this name, converted to `returns`. Waits without a process, as
        `sleep`. Raises TimeoutError if it does not come in time, now and in every repetition; Invalid
        RESULT_OF_OTHER_TYPE.
        """
        return await self._waiting.wait(signal, timeout, returns)

    async def start_child(self, kind: str, key: str, parameters: Mapping[str, Any] | None = None) -> Child:
        """Start a job `KIND~KEY` of the same user, once in this iteration; it ends with this job. Raises Invalid
        JOB_KIND_UNKNOWN, PARAMETERS_TOO_LARGE; Conflict JOB_ALREADY_RUNNING if another has started it.
        """
        return await self._children.start(kind, key, parameters)

    def compensate(
        self,
        name: str,
        call: Call,
        *arguments: Any,
        exists: Exists | None = None,
        idempotent_for: timedelta | None = None,
    ) -> None:
        """Say what takes back the effect before this line. If the job raises RollBack, fails for good or is stopped,
        all are called, the last one first, each as an effect of this iteration. Raises Invalid COMPENSATION_IN_ITEM.
        """
        self.compensations.add(name, call, arguments, exists, idempotent_for)

    def now(self) -> datetime:
        """Return the current time in the time zone of the user. A repeated iteration gets another one."""
        return self._now().astimezone(zone_of(self._job.record.timezone))

    @property
    def own_state(self) -> OwnState | None:
        """The state as it is stored. Raises Invalid STATE_NOT_JSON, STATE_TOO_LARGE."""
        return self._state_class.dump(self.state)

    def check_lease(self) -> None:
        """End this attempt if another process may have the job, because this one was frozen or the server was down.

        `effect` calls it before the call. A call that then waits, for a connection for example, calls it again right
        before it sends.
        """
        self._guard.check_lease()

    @property
    def skipped_effects(self) -> list[str]:
        """Effects that an earlier iteration has done for ever, outside of `each`, sorted."""
        return sorted(self._effects.skipped)

    async def _retried(self, name: str, policy: RetryPolicy | None, limit: str, doing: Awaitable[Any]) -> Any:
        try:
            return await doing
        except Throttled as refusal:
            if not limit:
                raise
            raise await self._turns.refuse(limit, refusal) from None
        except Exception as fault:
            await self._calls.again(name, policy, fault)
            raise

    def _restored(self) -> str:
        """Take the state that an earlier attempt has stored with the last item of this `each`; return its place."""
        self._snapshots += 1
        place = f"state\t{self._snapshots}"
        if stored := self._steps.get(place):
            self.state = self._state_class.load(msgspec.json.decode(stored, type=OwnState))
        return place

    async def _handle(self, unit: str, handle: Callable[[Item], Awaitable[Any]], item: Item, place: str) -> None:
        token = UNIT.set(unit)
        try:
            record = await record_of(unit, handle, item)
        finally:
            UNIT.reset(token)
        stored = msgspec.structs.replace(record, iteration=self.number, at=to_ms(self._now()))
        own = self.own_state
        value, log = msgspec.json.encode(stored).decode(), line_of(unit, record)
        state = await self._guard.write_unit(unit, value, log, (place, own) if own else None)
        self._guard.check(state)


class Job(ABC):
    """A kind of job. `max_runtime`: an iteration that takes longer has failed. `most_failures`: after so many failures
    in a row the job has failed; None: with a period or cron it goes on with its next iteration, without one it fails
    after a day. `state`: the class of `iteration.state`, a dataclass or a msgspec struct that can be made without
    arguments; `state_version` grows when what it stores changes, and `migrate_state` converts it. `signals`: the
    type of the data of each signal; others are refused when they are sent. `version`: an iteration that has begun with
    another one is left to a process that has that one. `concurrency`: how many iterations
    run at once in a process (100); `pace`: how many begin or go on in a second, in all; `limits`: other bounds over all
    processes.
    `checks_names`: False if names of steps, effects and waits are in files that are not found (jobs/code_names.py).
    """

    name: ClassVar[str]
    schedule: ClassVar[Schedule]
    max_runtime: ClassVar[timedelta] = timedelta(hours=1)
    most_failures: ClassVar[int | None] = None
    state: ClassVar[type | None] = None
    state_version: ClassVar[int] = 1
    signals: ClassVar[Mapping[str, Any]] = {}
    version: ClassVar[str] = ""
    concurrency: ClassVar[int | None] = None
    pace: ClassVar[float | None] = None
    limits: ClassVar[Sequence[Limit]] = ()
    checks_names: ClassVar[bool] = True

    @classmethod
    def migrate_state(cls, version: int, stored: Any) -> Any:
        """Return what an earlier version has stored, as JSON has it, in the form of `state_version`. Raises Invalid
        STATE_NOT_MIGRATED.
        """
        detail = f"The state is of version {version}, and migrate_state of {cls.name!r} is missing."
        raise Invalid("STATE_NOT_MIGRATED", detail)

    @classmethod
    def state_class(cls) -> StateClass:
        """Return what the kind declares of its state."""
        return StateClass(cls.state, cls.state_version, cls.migrate_state)

    @abstractmethod
    async def run(self, iteration: Iteration) -> Any:
        """Do the work of one iteration. Raises what `jobs.signals` has, or anything: then it is tried again."""
