"""Looking at the queue without changing it: statistics, one task, tasks by what they have in common (K-10, K-11, K-35).

Counts are kept by the scripts as tasks move, so asking costs the same with ten tasks and with a million.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from typing import Any

from core.errors import NotFound, malformed_cursor
from core.model.states import TaskState
from core.queue.task import TaskFilter, put_ms, split_id
from core.queue.task_search import SearchPosition, TaskSearch
from core.redis.keys import KEYS, kind_of
from core.redis.store import Store

_FIELDS = (
    *("state", "tube", "tenant", "lane", "kind", "user", "tags", "priority", "order", "due", "expires"),
    *("attempts", "owner", "history", "left", "body", "checkpoint", "cancel", "answer", "ended"),
)
_NUMBERS = frozenset({"priority", "order", "due", "expires", "attempts", "left", "ended"})
_ENDS = ("done", "failed", "cancelled", "expired")
_PAGE = 500
# Of how many tenants, and priorities of each, the oldest task is looked for.
_TENANTS, _PRIORITIES = 100, 20
# `lua/shared/ready.lua` score_of.
_STEP = 4398046511104


class Inspector:
    """See the module. `Queue` has these methods."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._selections = TaskSearch(store)

    async def stats(self) -> dict[str, Any]:
        """What is due, taken, buried, kept now; by tube: transitions since the beginning, `states` now, `oldest_ms` of
        what could be taken at once, `lag_ms`: how late on average tasks became takeable.
        """
        totals = {"due": 0, "taken": 0, "buried": 0, "finished": 0}
        transitions: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        states: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for shard in range(self._store.shards):
            for name, index in (("due", "due"), ("taken", "lease"), ("buried", "buried"), ("finished", "finished")):
                totals[name] += await self._store.command("ZCARD", KEYS[index].at(shard))
            await self._add_up("counters", shard, transitions)
            await self._add_up("states", shard, states)
        tubes = {tube: _tube(transitions[tube], states[tube]) for tube in sorted({*transitions, *states})}
        for tube, told in tubes.items():
            told["oldest_ms"] = await self._oldest_ms(tube)
        return {**totals, "overdue_ms": await self._overdue_ms(), "tubes": tubes}

    async def _add_up(self, key: str, shard: int, sums: dict[str, dict[str, int]]) -> None:
        counts = await self._store.command("HGETALL", KEYS[key].at(shard))
        for name, value in counts.items():
            tube, colon, what = name.rpartition(":")
            if colon:
                sums[tube][what] += int(value)

    def _now_ms(self) -> float:
        return time.time() * 1000 + self._store.clock_offset_ms

    async def _overdue_ms(self) -> int:
        """For how long the first deferred task has been due and nobody looked; 0 while workers are there."""
        heads = [
            await self._store.command("ZRANGE", KEYS["due"].at(shard), 0, 0, "WITHSCORES")
            for shard in range(self._store.shards)
        ]
        dues = [float(head[0][1]) for head in heads if head]
        return max(0, int(self._now_ms() - min(dues))) if dues else 0

    async def _oldest_ms(self, tube: str) -> int:
        """Age of the oldest takeable task: of each tenant the first of each priority."""
        since = [self._now_ms()]
        for shard in range(self._store.shards):
            tenants = await self._store.command("ZRANGE", KEYS["tenants"].at(shard, tube), 0, _TENANTS - 1)
            for found in await asyncio.gather(*(self._firsts(shard, tube, tenant) for tenant in tenants)):
                since += found
        return int(self._now_ms() - min(since))

    async def _firsts(self, shard: int, tube: str, tenant: str) -> list[float]:
        """Since when the first task of each priority could be taken, in ms."""
        name, step, since = KEYS["ready"].at(shard, tube, tenant), 0, list[float]()
        for _ in range(_PRIORITIES):
            page = await self._store.command("ZRANGEBYSCORE", name, step, "+inf", "WITHSCORES", "LIMIT", 0, 1)
            if not page:
                break
            ((member, score),) = page
            step = (int(float(score)) // _STEP + 1) * _STEP
            since.append(await self._takeable_since(shard, tube, str(member)))
        return since

    async def _takeable_since(self, shard: int, tube: str, member: str) -> float:
        if member.startswith("@"):
            member = await self._store.command("HGET", KEYS["front"].at(shard, tube), member[1:]) or ""
        due = await self._store.command("HGET", KEYS["task"].at(shard, member), "due")
        return max(put_ms(member) or self._now_ms(), float(due or 0))

    async def peek(self, task_id: str) -> dict[str, Any]:
        """A task as it stands; `locked` with the task it waits for. Changes nothing. Raises NotFound TASK_NOT_FOUND."""
        shard, name = split_id(task_id)
        return await self._describe(shard, name)

    async def _describe(self, shard: int, name: str) -> dict[str, Any]:
        values = await self._store.command("HMGET", KEYS["task"].at(shard, name), *_FIELDS)
        facts = {field: value for field, value in zip(_FIELDS, values, strict=True) if value is not None}
        if "state" not in facts:
            raise NotFound("TASK_NOT_FOUND", "There is no such task.")
        found: dict[str, Any] = {"id": f"{shard}.{name}"}
        found |= {field: int(value) if field in _NUMBERS else value for field, value in facts.items()}
        if "tags" in found:
            found["tags"] = facts["tags"].split("\n")
        if facts.get("lane") and facts["state"] == TaskState.READY:
            found |= await self._lock(shard, name, facts["tube"], facts["lane"])
        return found

    async def _lock(self, shard: int, name: str, tube: str, lane: str) -> dict[str, str]:
        """`locked` is derived: another task stands first in its lane."""
        first = await self._store.command("HGET", KEYS["front"].at(shard, tube), lane)
        if not first or first == name:
            return {}
        return {"state": TaskState.LOCKED, "waits_for": f"{shard}.{first}"}

    async def _seen(self, shard: int, name: str) -> dict[str, Any] | None:
        """None: it ended meanwhile."""
        try:
            return await self._describe(shard, name)
        except NotFound:
            return None

    async def select(self, selection: TaskFilter, limit: int = 1000) -> list[dict[str, Any]]:
        """The first live tasks that have something in common, through an index: in the order they were put, but
        by lane first those that stand in it. Raises Invalid SELECTION_EMPTY.
        """
        found: list[dict[str, Any]] = []
        async for _, tasks in self._pages(selection, SearchPosition(), min(limit, _PAGE)):
            found += tasks
            if len(found) >= limit:
                break
        return found[:limit]

    async def page(
        self, selection: TaskFilter, cursor: str | None, limit: int
    ) -> tuple[list[dict[str, Any]], str | None]:
        """`select`, a page at a time; a page may hold fewer than `limit`. Raises Invalid SELECTION_EMPTY,
        CURSOR_MALFORMED.
        """
        async for place, tasks in self._pages(selection, SearchPosition.read(cursor), limit):
            return tasks, str(place)
        return [], None

    async def _pages(
        self, selection: TaskFilter, start: SearchPosition, size: int
    ) -> AsyncIterator[tuple[SearchPosition, list[dict[str, Any]]]]:
        """(where the page ends, those of it that fit). Parcels are found through their delivery."""
        async for place, names in self._selections.pages(selection, start, size):
            tasks = await asyncio.gather(*(self._seen(place.shard, name) for name in names))
            yield place, [task for task in tasks if task and "history" not in task and selection.fits(task)]

    async def _names(self, index: str, tube: str) -> AsyncIterator[tuple[int, str]]:
        """Of an index by time: the tasks of a tube ("": of all), the earliest first. The names are read first, as what
        is done with them takes them away.
        """
        for shard in range(self._store.shards):
            names = await self._store.command("ZRANGE", KEYS[index].at(shard), 0, -1)
            for start in range(0, len(names), _PAGE):
                page = names[start : start + _PAGE]
                keys = [KEYS["task"].at(shard, name) for name in page]
                tubes = await asyncio.gather(*(self._store.command("HGET", key, "tube") for key in keys))
                for name, of in zip(page, tubes, strict=True):
                    if not tube or of == tube:
                        yield shard, name

    async def list(
        self, *, tube: str | None, state: str | None, tenant: str | None, cursor: str | None, limit: int
    ) -> tuple[list[dict[str, Any]], str | None]:
        """All that is there, parcels included, in pages, in no order; a page may hold fewer than `limit`. Raises
        Invalid CURSOR_MALFORMED.
        """
        shard, position = _cursor(cursor, self._store.shards)
        pattern = KEYS["task"].at(shard, "*").replace("{", "[{]")
        position, names = await self._store.command("SCAN", position, "MATCH", pattern, "COUNT", max(limit, 10))
        prefix = len(KEYS["task"].at(shard, ""))
        found = [await self._seen(shard, name[prefix:]) for name in names if kind_of(name) is KEYS["task"]]
        wanted = {"tube": tube, "state": state, "tenant": tenant}
        kept = [task for task in found if task and all(task.get(k) == v for k, v in wanted.items() if v is not None)]
        return kept, _next_cursor(shard, int(position), self._store.shards)


def _tube(counts: Mapping[str, int], states: Mapping[str, int]) -> dict[str, Any]:
    locked = states.get("locked", 0)
    now = {state: states.get(state, 0) for state in ("waiting", "ready", "locked", "taken", "buried")}
    now["ready"] -= locked
    told = {name: count for name, count in counts.items() if name != "lag_ms"}
    lag = counts.get("lag_ms", 0) / counts["promoted"] if counts.get("promoted") else 0.0
    # By conservation (I7): what was put and has not ended.
    live = counts.get("put", 0) - sum(counts.get(end, 0) for end in _ENDS)
    return {**told, "live": live, "states": now, "lag_ms": round(lag, 1)}


def _cursor(cursor: str | None, shards: int) -> tuple[int, int]:
    if cursor is None:
        return 0, 0
    shard, _, position = cursor.partition("-")
    if not (
        shard.isdecimal()
        and position.isdecimal()
        and len(cursor) < 30
        and int(shard) < shards
        and int(position) < 2**64
    ):
        raise malformed_cursor()
    return int(shard), int(position)


def _next_cursor(shard: int, position: int, shards: int) -> str | None:
    if position:
        return f"{shard}-{position}"
    return f"{shard + 1}-0" if shard + 1 < shards else None
