"""The records of a job's items and effects; an operator reads and corrects them here.

    unit:KEY · unit NAME:KEY     an item of `each`, and of an `each` with a name
    effect:NAME                  something done outside
    step:NAME                    the result of a step of the iteration that has begun; it ends with that

An effect whose answer was lost is `unknown`: it is never repeated, and its item is `unknown`, too. An operator finds
out whether it took place and resolves it.
"""

import asyncio
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.errors import Conflict, Invalid, NotFound, cursor_number
from core.jobs.record import JobId, JobRecord, line_of
from core.jobs.states import Actor
from core.jobs.storage import place_of
from core.model.clock import from_ms
from core.model.json_form import FAULTS, encoded
from core.redis.keys import KEYS
from core.redis.store import Store

EFFECT = "effect:"
STEP = "step:"
NULL = msgspec.Raw(b"null")

_LARGEST_SHOWN = 4096
_TRIES = 50


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
        views = [_view(unit, _decoded(stored)) for unit, stored in zip(flat[::2], flat[1::2], strict=True)]
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
            _view(step, UnitRecord(UnitStatus.DONE, msgspec.Raw(value.encode()), iteration=number))
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


def _view(unit: str, record: UnitRecord) -> UnitView:
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
