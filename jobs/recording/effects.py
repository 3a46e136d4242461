"""Effects: what a job does outside, once. The intent is stored before the call, its result after it.

    nothing recorded ─▶ intent ─▶ call ─▶ done
                          └─ crash ─▶ begun ─▶ the same key again · `exists` · unknown

Calls of steps and effects are repeated after an error that their policy names, within a time limit, with a heartbeat:

    call ─▶ error ─▶ the number of failures is stored ─▶ the iteration sleeps ─▶ the call again
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from inspect import isawaitable
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from core.errors import AdaError, Invalid, StoreError
from core.jobs.steps import EFFECT, NULL, UnitRecord, UnitStatus
from core.model.clock import Backoff, from_ms, to_ms
from core.queue.checks import check_spans, check_type
from jobs.recording.guard import PROGRESS, UNIT, Guard, returned_form, stored_form
from jobs.signals import Found, Interrupted, Lost, NotDone, Unclear

Exists = Callable[[], Awaitable[bool | Found | None]]
Call = Callable[..., Awaitable[Any]]

_IN_ITEM = (
    "A handler of `each` names no compensation: it is not called again for a recorded item, so a repeated iteration "
    "would not know it. Loop over the items with effects, and name it there."
)


@dataclass(frozen=True, slots=True)
class Effect:
    """The declaration of an effect. See `Iteration.effect`. `turn`: waits until the call may begin."""

    name: str
    call: Call
    arguments: tuple[Any, ...]
    exists: Exists | None
    per_iteration: bool
    idempotent_for: timedelta | None
    returns: Any
    key: str = ""
    turn: Callable[[], Awaitable[None]] | None = None

    def __post_init__(self) -> None:
        """Raise TypeError for a time of another type."""
        check_spans("call", idempotent_for=self.idempotent_for)

    @property
    def id(self) -> str:
        """Its name in the store."""
        return EFFECT + self.name


class JobEffects:
    """The effects of one attempt."""

    def __init__(self, guard: Guard, now: Callable[[], datetime]) -> None:
        self._guard = guard
        self._number = guard.job.record.iteration
        self._now = now
        self.skipped: set[str] = set()
        """Those that an earlier iteration has done, outside of items."""

    async def do(self, effect: Effect) -> Any:
        """Do it, unless it is recorded. Returns its result. Raises Unclear, and what the call raises."""
        record = await self._recorded(effect)
        if record and record.status is UnitStatus.BEGUN and not self._is_key_known(effect, record):
            record = await self._clarified(effect, record)
        if record is None or (record.status is not UnitStatus.DONE and self._is_key_known(effect, record)):
            record = await self._done(effect, record)
        elif record.iteration != self._number and not UNIT.get():
            self.skipped.add(effect.name)
        return self._result(effect, record)

    async def _recorded(self, effect: Effect) -> UnitRecord | None:
        (stored,) = await self._guard.units([effect.id])
        record = msgspec.json.decode(stored, type=UnitRecord) if stored else None
        is_of_other = record and effect.per_iteration and record.iteration != self._number
        return None if is_of_other else record

    def _is_key_known(self, effect: Effect, record: UnitRecord) -> bool:
        """Return whether the service certainly still knows the idempotency key of the first call."""
        if not record.key or effect.idempotent_for is None:
            return False
        return self._now() < from_ms(record.at) + effect.idempotent_for

    async def _clarified(self, effect: Effect, record: UnitRecord) -> UnitRecord | None:
        """Return what became of an effect whose call was interrupted; None if it did not take place."""
        answer = await effect.exists() if effect.exists else None
        if answer is False:
            return None
        if isinstance(answer, Found):
            record = replace(record, result=stored_form(effect.name, answer.result))
        status = UnitStatus.DONE if answer else UnitStatus.UNKNOWN
        return await self._write(effect, replace(record, status=status))

    async def _done(self, effect: Effect, begun: UnitRecord | None) -> UnitRecord:
        """Call an effect and record it. `begun`: the record of a call before, which is repeated with the same key."""
        if begun is None:
            self._guard.check()
        if effect.turn and not self._guard.is_replay:
            await effect.turn()
        record = begun or self._intent(effect)
        await self._begin(effect, record, is_first=begun is None)
        key = {"idempotency_key": record.key} if effect.idempotent_for else {}
        try:
            result = await effect.call(*effect.arguments, **key)
        except NotDone:
            if begun is None:
                await self._forget(effect)
            raise
        return await self._record_result(effect, record, result)

    def _intent(self, effect: Effect) -> UnitRecord:
        key = (effect.key or uuid4().hex) if effect.idempotent_for else ""
        return UnitRecord(UnitStatus.BEGUN, iteration=self._number, at=to_ms(self._now()), unit=UNIT.get(), key=key)

    async def _begin(self, effect: Effect, record: UnitRecord, *, is_first: bool) -> None:
        """Store the intent. Raises Interrupted, Lost or StoreError, and leaves no intent, if the effect may not begin;
        only a store that fails again keeps it.
        """
        self._guard.check("" if is_first else self._guard.state)
        try:
            state = await self._guard.write_intent(effect.id, _json(record))
        except StoreError:  # also if it is written, and no replica has confirmed it
            if is_first:
                with suppress(StoreError):
                    await self._guard.forget_intent(effect.id)
            raise
        try:
            self._guard.check(state)
            self._guard.check_lease()
        except (Interrupted, Lost):
            if is_first and state == self._guard.state:
                await self._guard.forget_intent(effect.id)
            raise

    async def _forget(self, effect: Effect) -> None:
        if await self._guard.forget_intent(effect.id) == "lost":
            self._guard.check("lost")

    async def _record_result(self, effect: Effect, record: UnitRecord, result: Any) -> UnitRecord:
        """Record that an effect has taken place, also if its result cannot be stored."""
        try:
            done = replace(record, status=UnitStatus.DONE, result=stored_form(effect.name, result))
        except Invalid as refusal:
            done = replace(record, status=UnitStatus.DONE, reason=refusal.detail)
        return await self._write(effect, done)

    async def _write(self, effect: Effect, record: UnitRecord) -> UnitRecord:
        """Write a record without a check of the job's state: what was begun is finished."""
        if await self._guard.write_unit(effect.id, _json(record)) == "lost":
            self._guard.check("lost")
        return record

    def _result(self, effect: Effect, record: UnitRecord) -> Any:
        if record.status is UnitStatus.UNKNOWN:
            job = self._guard.job.id.name
            raise Unclear(
                f"whether {effect.name!r} took place is not known; find out, then "
                f"`./ada jobs resolve {job} '{effect.id}' done` or `not-done`"
            )
        if record.reason:
            raise Invalid("RESULT_NOT_STORED", f"{effect.name!r} took place. {record.reason}")
        is_known = bytes(record.result) != bytes(NULL)  # None also if it is only known that it took place
        return returned_form(effect.name, record.result, effect.returns) if is_known else None


def _json(record: UnitRecord) -> str:
    return msgspec.json.encode(record).decode()


class Compensations:
    """Take back the steps of an iteration, in reverse order, if it is rolled back or stopped. The code of the job names
    them again in each repetition.
    """

    def __init__(self) -> None:
        self._named: list[Effect] = []

    def add(
        self, name: str, call: Call, arguments: tuple[Any, ...], exists: Exists | None, idempotent_for: timedelta | None
    ) -> None:
        """Note what takes back what was done last. Raises Invalid COMPENSATION_IN_ITEM."""
        if UNIT.get():
            raise Invalid("COMPENSATION_IN_ITEM", _IN_ITEM)
        self._named.append(Effect(f"compensate {name}", call, arguments, exists, True, idempotent_for, Any))

    async def run(self, effects: JobEffects) -> None:
        """Call all of them, the last one first; those that are recorded are skipped. Raises what a call raises."""
        for effect in reversed(self._named):
            await effects.do(effect)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """After which errors a call is made again. `attempts`: how many there are in all; `first`, `longest`: the pauses,
    which grow; `on`: the errors; `NotDone` is always one of them. The other errors of Ada's own are none.
    """

    attempts: int = 5
    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=5)
    on: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        """Raise TypeError for a value of another type."""
        check_type("retry policy", "attempts", self.attempts, int)
        check_spans("retry policy", first=self.first, longest=self.longest)
        check_type("retry policy", "on", self.on, tuple)

    def covers(self, fault: Exception) -> bool:
        """Return whether the call is made again after this error."""
        return isinstance(fault, NotDone) or (isinstance(fault, self.on) and not isinstance(fault, AdaError))


@dataclass(slots=True)
class _RunningCalls:
    """The call that runs in this task. `limit`: until its next heartbeat."""

    name: str
    limit: asyncio.Timeout | None = None
    every: timedelta | None = None


_RUNNING: ContextVar[_RunningCalls | None] = ContextVar("running", default=None)


class Calls:
    """The calls of one attempt. `steps`: what the iteration has stored."""

    def __init__(self, guard: Guard, steps: Mapping[str, str], now: Callable[[], datetime]) -> None:
        self._guard = guard
        self._steps = steps
        self._now = now
        self._progress: dict[str, Any] = {}

    def limited(self, name: str, call: Call, timeout: timedelta | None, heartbeat: timedelta | None) -> Call:
        """Return the call with its limits: it raises TimeoutError after `timeout`, or if it sends no heartbeat for so
        long; TypeError if the call is not async.
        """
        check_spans("call", timeout=timeout, heartbeat=heartbeat)

        async def limited(*arguments: Any, **options: Any) -> Any:
            async with asyncio.timeout(_seconds(timeout)), asyncio.timeout(_seconds(heartbeat)) as limit:
                token = _RUNNING.set(_RunningCalls(name, limit if heartbeat else None, heartbeat))
                try:
                    running = call(*arguments, **options)
                    if not isawaitable(running):
                        raise TypeError(f"The call of {name} is not async: use `async def`, or asyncio.to_thread.")
                    return await running
                finally:
                    _RUNNING.reset(token)

        return limited

    async def heartbeat(self, progress: Any) -> None:
        """Store how far the call has come, and check that the job goes on. Raises as `Guard.check`; Invalid
        HEARTBEAT_OUTSIDE, RESULT_NOT_JSON, RESULT_TOO_LARGE.
        """
        running = self._running()
        if running.limit is not None and running.every is not None:
            running.limit.reschedule(asyncio.get_running_loop().time() + running.every.total_seconds())
        stored = stored_form(running.name, progress)
        self._progress[running.name] = msgspec.json.decode(stored)
        await self._guard.record_step(f"{PROGRESS}{running.name}", bytes(stored).decode())

    def progress(self) -> Any:
        """Return what the last heartbeat of this call has stored, also in an earlier attempt; None if there was none.
        Raises Invalid HEARTBEAT_OUTSIDE.
        """
        name = self._running().name
        stored = self._steps.get(f"{PROGRESS}{name}")
        return self._progress.get(name, msgspec.json.decode(stored) if stored else None)

    async def again(self, name: str, policy: RetryPolicy | None, fault: Exception) -> None:
        """Put the iteration off if the policy makes the call again, otherwise return. Raises Suspended."""
        if policy is None or not policy.covers(fault):
            return
        place = f"failures\t{name}"
        failures = int(self._steps.get(place, 0)) + 1
        if failures >= policy.attempts:
            await self._guard.record_line("", place, "0")
            return
        pause = Backoff(policy.first, policy.longest).pause(failures)
        line = f"{name}: attempt {failures} of {policy.attempts} failed ({type(fault).__name__})"
        await self._guard.record_line(line, place, str(failures))
        raise self._guard.suspend(self._now() + pause, [], line)

    def _running(self) -> _RunningCalls:
        running = _RUNNING.get()
        if running is None:
            raise Invalid("HEARTBEAT_OUTSIDE", "Only the call of a step or an effect has a heartbeat.")
        return running


def _seconds(time: timedelta | None) -> float | None:
    return time.total_seconds() if time is not None else None
