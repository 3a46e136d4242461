"""Effects: what a job does outside, once. The intent is stored before the call, its result after it.

nothing recorded ─▶ intent ─▶ call ─▶ done
                      └─ crash ─▶ begun ─▶ the same key again · `exists` · unknown
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from core.errors import Invalid, StoreError
from core.jobs.units import EFFECT, NULL, UnitRecord, UnitStatus
from core.model.clock import from_ms, to_ms
from core.queue.checks import check_spans
from jobs.recording.guard import Guard
from jobs.recording.records import UNIT, returned_form, stored_form
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
