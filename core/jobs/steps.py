"""The record of an iteration, in the order in which its entries were stored first: steps, waits, items, effects.

It is there while the iteration runs, waits or is paused, and of a job that has ended for the retention of histories.
An iteration can be reset to one of its steps: `plan` returns what that drops, and what stays because it came from
outside: effects, items, signals.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import Conflict, Invalid, NotFound, cursor_number
from core.jobs.record import JobId, ResetPoint
from core.jobs.storage import JobStorage, place_of
from core.jobs.units import EFFECT, STEP, UnitRecord, shown_result
from core.model.clock import from_ms
from core.redis.keys import KEYS
from core.redis.store import Store

ITEM = "unit"
WAIT = "wait "
SLEEP = "sleep\t"
COMPENSATION = f"{EFFECT}compensate "


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
