"""The record of an iteration, in the order in which its entries were stored first: steps, waits, items, effects.

    unit:KEY · unit NAME:KEY     an item of `each`, and of an `each` with a name
    effect:NAME                  something done outside
    step:NAME                    the result of a step of the iteration that has begun; it ends with that

It is there while the iteration runs, waits or is paused, and of a job that has ended for the retention of histories.
An iteration can be reset to one of its steps: `plan` returns what that drops, and what stays because it came from
outside: effects, items, signals.

An effect whose answer was lost is `unknown`: it is never repeated, and its item is `unknown`, too. An operator finds
out whether it took place and resolves it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.errors import Conflict, Invalid, NotFound, cursor_number
from core.jobs.record import JobId, JobRecord, ResetPoint, line_of
from core.jobs.states import Actor
from core.jobs.storage import JobStorage, place_of
from core.model.clock import from_ms
from core.model.json_form import FAULTS, encoded
from core.redis.keys import KEYS
from core.redis.store import Store

EFFECT = "effect:"
STEP = "step:"
NULL = msgspec.Raw(b"null")

_LARGEST_SHOWN = 4096
_TRIES = 50
ITEM = "unit"
WAIT = "wait "
SLEEP = "sleep\t"
COMPENSATION = f"{EFFECT}compensate "


class UnitStatus(StrEnum):
    """`begun`: the intent of an effect is stored, its answer is not."""

    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


class UnitOutcome(StrEnum):
    """The outcome that an operator enters for a unit whose own is not known."""

    DONE = "done"
    NOT_DONE = "not_done"


class UnitRecord(Struct, frozen=True, omit_defaults=True):
    """`result`: JSON. `iteration`: the number of the one in which it was done or begun, `at`: when (ms). Of an effect:
    `unit`, the item in whose handling it was begun; `key`, its idempotency key.
    """

    status: UnitStatus
    result: msgspec.Raw = NULL
    reason: str = ""
    iteration: int = 0
    at: int = 0
    unit: str = ""
    key: str = ""


class UnitView(Struct, frozen=True, omit_defaults=True):
    """A unit or an effect as HTTP and the command line show it. `result`: if it has at most 4096 bytes. `unit`: the
    item to which an effect belongs.
    """

    id: str
    status: UnitStatus
    iteration: int
    at: datetime | None = None
    reason: str | None = None
    result: Any = None
    unit: str | None = None
    idempotency_key: str | None = None


class JobUnits:
    """Reads and corrects the records of all jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self, job_id: JobId, status: UnitStatus | None = None, cursor: str = "", limit: int = 100
    ) -> tuple[list[UnitView], str]:
        """Return (units and effects, cursor of the next page or ""), in no order. On the first page are also the steps
        of the iteration that has begun. A page may have fewer than `limit` or more; a unit that is recorded or reset
        meanwhile may be missing or appear twice. Raises Invalid CURSOR_MALFORMED.
        """
        position = cursor_number(cursor)
        shard, name = place_of(job_id, self._store.shards)
        key = KEYS["job_units"].at(shard, name)
        following, flat = await self._store.command("HSCAN", key, position, "COUNT", limit)
        views = [_view_of_unit(unit, _decoded(stored)) for unit, stored in zip(flat[::2], flat[1::2], strict=True)]
        if not cursor and status in (None, UnitStatus.DONE):
            views = [*await self._steps(shard, name), *views]
        found = [view for view in views if status is None or view.status is status]
        return found, "" if str(following) == "0" else str(following)

    async def _steps(self, shard: int, name: str) -> list[UnitView]:
        """Return what the iteration that has begun has stored by name."""
        stored, record = await asyncio.gather(
            self._store.command("HGETALL", KEYS["job_steps"].at(shard, name)),
            self._store.command("HGET", KEYS["job"].at(shard, name), "record"),
        )
        number = msgspec.json.decode(record, type=JobRecord).iteration if record else 0
        return [
            _view_of_unit(step, UnitRecord(UnitStatus.DONE, msgspec.Raw(value.encode()), iteration=number))
            for step, value in sorted(stored.items())
            if step.startswith(STEP)
        ]

    async def resolve(
        self, job_id: JobId, unit: str, outcome: UnitOutcome, result: Any = None, by: Actor = Actor.ADMIN
    ) -> None:
        """Record what became of something unknown: it counts as done, with this result, or is done again. An item that
        was unknown because of this effect is handled again.

        Raises NotFound UNIT_NOT_FOUND; Conflict UNIT_NOT_UNCLEAR, UNIT_IN_HAND; Invalid RESULT_NOT_JSON.
        """
        after = msgspec.Raw(_checked(result)) if outcome is UnitOutcome.DONE else None
        await self._mend(job_id, unit, after, f"{unit}: resolved as {outcome.replace('_', ' ')} by {by}", True)

    async def resolve_all(
        self, job_id: JobId, prefix: str, outcome: UnitOutcome, result: Any = None, by: Actor = Actor.ADMIN
    ) -> int:
        """Resolve all units and effects of a job that are unknown and whose ids begin with `prefix`. Returns how many.
        Raises as `resolve`; a repetition goes on with the rest.
        """
        resolved, cursor = 0, None
        while cursor != "":
            page, cursor = await self.page(job_id, UnitStatus.UNKNOWN, cursor or "")
            for unit in (one.id for one in page if one.id.startswith(prefix)):
                await self.resolve(job_id, unit, outcome, result, by)
                resolved += 1
        return resolved

    async def reset(self, job_id: JobId, unit: str, by: Actor = Actor.ADMIN) -> None:
        """Forget a unit or an effect, whatever became of it: it is done again. Raises NotFound UNIT_NOT_FOUND; Conflict
        UNIT_IN_HAND.
        """
        await self._mend(job_id, unit, None, f"{unit}: reset by {by}", False)

    async def _mend(self, job_id: JobId, unit: str, result: msgspec.Raw | None, log: str, only_unclear: bool) -> None:
        """Correct the record of a unit. `result` None: its record is removed."""
        for _ in range(_TRIES):
            before, record = await self._read(job_id, unit)
            if only_unclear and record.status not in (UnitStatus.UNKNOWN, UnitStatus.BEGUN):
                raise Conflict("UNIT_NOT_UNCLEAR", f"What became of {unit!r} is known: {record.status}.")
            done = replace(record, status=UnitStatus.DONE, result=result, reason="") if result else None
            after = msgspec.json.encode(done).decode() if done else ""
            shard, name = place_of(job_id, self._store.shards)
            words = (unit, before, after, await self._unclear_item(job_id, record), line_of(log))
            match await self._store.run("mend_unit", shard, name, *words):
                case "mended":
                    return
                case "in_hand":
                    raise Conflict("UNIT_IN_HAND", f"{unit!r} is being done at this moment.")
        raise Conflict("JOB_CHANGES_TOO_OFTEN", "The job is being changed by others all the time. Try again.")

    async def _unclear_item(self, job_id: JobId, effect: UnitRecord) -> str:
        """Return the item that is unknown because this effect is, or ""."""
        if not effect.unit:
            return ""
        try:
            _, item = await self._read(job_id, effect.unit)
        except NotFound:
            return ""
        return effect.unit if item.status is UnitStatus.UNKNOWN else ""

    async def _read(self, job_id: JobId, unit: str) -> tuple[str, UnitRecord]:
        """Return the record of a unit. Raises NotFound UNIT_NOT_FOUND."""
        shard, name = place_of(job_id, self._store.shards)
        (stored,) = await self._store.read_hash(KEYS["job_units"].at(shard, name), unit)
        if stored is None:
            raise NotFound("UNIT_NOT_FOUND", f"Nothing is recorded of {unit!r}.")
        return stored, _decoded(stored)


def shown_result(result: msgspec.Raw) -> Any:
    """Return a result, None in place of a large one."""
    return msgspec.json.decode(result) if len(bytes(result)) <= _LARGEST_SHOWN else None


def _checked(result: Any) -> bytes:
    try:
        return encoded(result)
    except FAULTS as fault:
        raise Invalid("RESULT_NOT_JSON", f"The result cannot be stored: {fault}.", "result") from None


def _decoded(stored: str) -> UnitRecord:
    return msgspec.json.decode(stored, type=UnitRecord)


def _view_of_unit(unit: str, record: UnitRecord) -> UnitView:
    return UnitView(
        unit,
        record.status,
        record.iteration,
        at=from_ms(record.at) if record.at else None,
        reason=record.reason or None,
        result=shown_result(record.result),
        unit=record.unit or None,
        idempotency_key=record.key or None,
    )


class StepView(Struct, frozen=True, omit_defaults=True):
    """One result of an iteration. `id`: `step:NAME`, `effect:NAME`, `unit:KEY`, `wait:SIGNAL` or `sleep`. `status`:
    `done`; of effects and items also `begun`, `failed`, `unknown`; of waits `waiting`, `received`, `timed_out`.
    `at`: when it was stored first. `result`: if it has at most 4096 bytes.
    """

    id: str
    status: str
    at: datetime
    result: Any = None
    reason: str | None = None


class ResetPlan(Struct, frozen=True):
    """The steps that a reset drops, and those that stay: the first 1000 of each."""

    dropped: Sequence[StepView]
    kept: Sequence[StepView]


class JobSteps:
    """Lists what iterations have stored, and plans resets to a step."""

    def __init__(self, store: Store, storage: JobStorage) -> None:
        self._store = store
        self._storage = storage

    async def page(self, job_id: JobId, cursor: str = "", limit: int = 100) -> tuple[list[StepView], str]:
        """Return (results in their order, cursor of the next page or ""). A page may have fewer than `limit`. Raises
        Invalid CURSOR_MALFORMED.
        """
        start = cursor_number(cursor)
        names = await self._names(job_id, start, limit)
        return await self._views(job_id, names), str(start + limit) if len(names) == limit else ""

    async def plan(self, job_id: JobId, point: ResetPoint, most: int = 1000) -> ResetPlan:
        """Return what a reset would do now. Raises as `check`."""
        place = await self.check(job_id, point)
        views = await self._views(job_id, await self._names(job_id, place, most))
        kept = [view for view in views if _stays(view, point)]
        return ResetPlan([view for view in views if view not in kept], kept)

    async def check(self, job_id: JobId, point: ResetPoint) -> int:
        """Return the place of a step. Raises NotFound STEP_NOT_FOUND; Conflict JOB_TOOK_BACK if compensations have
        taken back what would stay.
        """
        shard, name = place_of(job_id, self._store.shards)
        place = await self._store.command("ZRANK", KEYS["job_order"].at(shard, name), point.name)
        if place is None or not await self._views(job_id, [(point.name, 0)]):
            raise NotFound("STEP_NOT_FOUND", f"The iteration has stored nothing under {point.name!r}.")
        if not point.again and (undone := await self._compensations(job_id)):
            detail = f"It has taken back what it had done: {', '.join(undone[:5])}. Do effects again, or start the job."
            raise Conflict("JOB_TOOK_BACK", detail)
        return int(place)

    async def _compensations(self, job_id: JobId) -> list[str]:
        shard, name = place_of(job_id, self._store.shards)
        stored = await self._store.command("HKEYS", KEYS["job_steps"].at(shard, name))
        return sorted(one for one in stored if one.startswith(COMPENSATION))

    async def _names(self, job_id: JobId, start: int, most: int) -> list[tuple[str, int]]:
        """Return names and when each was stored first (ms)."""
        shard, name = place_of(job_id, self._store.shards)
        key = KEYS["job_order"].at(shard, name)
        found = await self._store.command("ZRANGE", key, start, start + most - 1, "WITHSCORES")
        return [(one, int(float(at))) for one, at in found]

    async def _views(self, job_id: JobId, names: Sequence[tuple[str, int]]) -> list[StepView]:
        shard, job = place_of(job_id, self._store.shards)
        words = [name for name, _ in names]
        if not words:
            return []
        steps, units = await asyncio.gather(
            self._store.read_hash(KEYS["job_steps"].at(shard, job), *words), self._storage.units(job_id, words)
        )
        views = map(_view, names, steps, units)
        return [view for view in views if view]


def point_of(name: str, *, again: bool = False) -> ResetPoint:
    """Return the point that a person names: a step by its name alone, everything else as it is listed. Raises Invalid
    STEP_MALFORMED.
    """
    if not name or "\t" in name:
        raise Invalid("STEP_MALFORMED", "Name a step, an effect or an item, as the list of steps has it.", "from")
    is_listed = name.startswith((STEP, EFFECT, f"{ITEM}:", f"{ITEM} "))
    return ResetPoint(name if is_listed else f"{STEP}{name}", again)


def _stays(view: StepView, point: ResetPoint) -> bool:
    if view.id.startswith((EFFECT, ITEM)):
        return not point.again
    return view.status == "received"


def _view(name: tuple[str, int], step: str | None, unit: str | None) -> StepView | None:
    """Return what is shown of a name; None if nothing is: of marks that the iteration keeps for itself."""
    stored, at = name[0], from_ms(name[1])
    if stored.startswith((EFFECT, ITEM)):
        return _unit_view(stored, at, unit) if unit else None
    if step is None:
        return None
    if stored.startswith(STEP):
        return StepView(stored, "done", at, shown_result(msgspec.Raw(step.encode())))
    if stored.startswith(SLEEP):
        return StepView("sleep", "done", at, from_ms(step).isoformat())
    return _wait_view(stored, at, step) if stored.startswith(WAIT) else None


def _unit_view(stored: str, at: datetime, unit: str) -> StepView:
    record = msgspec.json.decode(unit, type=UnitRecord)
    return StepView(stored, record.status, at, shown_result(record.result), record.reason or None)


def _wait_view(stored: str, at: datetime, step: str) -> StepView:
    wait: Mapping[str, Any] = msgspec.json.decode(step)
    signal = stored.removeprefix(WAIT).partition("\t")[0]
    data = msgspec.Raw(msgspec.json.encode(wait.get("data")))
    return StepView(f"wait:{signal}", str(wait["answer"]), at, shown_result(data))
