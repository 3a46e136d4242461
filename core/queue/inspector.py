"""Reads the queue without changing it: statistics, one task, search, listing (K-10, K-11, K-35).

The functions keep the counts as tasks move, so statistics cost the same with ten tasks and with a million.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence

import msgspec

from core.errors import NotFound
from core.model.states import TaskState
from core.queue.task import TaskFilter, TaskPage, TaskView, viewed_facts
from core.queue.task_ids import put_ms, split_id
from core.queue.task_search import LIVE, SearchPosition, TaskListing, TaskPosition, TaskSearch
from core.redis.constants import PRIORITY_STEP
from core.redis.keys import KEYS
from core.redis.store import Store

_ENDS = ("done", "failed", "cancelled", "expired")
_PAGE = 500
# Parts of an index that one page of a list reads: some 2000 tasks, most of which may have another tube or tenant.
_PARTS = 20
# How many tenants, and priorities of each, are searched for the oldest task.
_TENANTS, _PRIORITIES = 100, 20


class StateCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of tasks in each state now."""

    waiting: int
    ready: int
    locked: int
    taken: int
    buried: int


class TubeStats(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One tube. `put` to `promoted` count what has happened since the beginning; 0 is absent in JSON. `live`: tasks
    that have not ended. `oldest_ms`: age of the oldest ready task. `lag_ms`: how late deferred tasks became ready, on
    average.
    """

    put: int = 0
    claimed: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    expired: int = 0
    retried: int = 0
    released: int = 0
    lost: int = 0
    buried: int = 0
    kicked: int = 0
    promoted: int = 0
    live: int
    states: StateCounts
    lag_ms: float
    oldest_ms: int


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """All shards. `due`: deferred; `finished`: ended and kept. `overdue_ms`: how long the first deferred task has been
    due without any worker promoting it; 0 while workers run.
    """

    due: int
    taken: int
    buried: int
    finished: int
    overdue_ms: int
    tubes: Mapping[str, TubeStats]


_TRANSITIONS = frozenset(TubeStats.__struct_fields__) - {"live", "states", "lag_ms", "oldest_ms"}


class Inspector:
    """Reads the queue; `Queue.inspector` is one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._search = TaskSearch(store)
        self._listing = TaskListing(store)

    async def stats(self) -> QueueStats:
        """Return counts of the whole queue and of each tube that has had a task."""
        return QueueStats(
            due=await self._size("due"),
            taken=await self._size("lease"),
            buried=await self._size("buried"),
            finished=await self._size("finished"),
            overdue_ms=await self._overdue_ms(),
            tubes=await self.tube_stats(await self.sums_by_tube("counters")),
        )

    async def tube_stats(self, counters: Mapping[str, Mapping[str, int]]) -> dict[str, TubeStats]:
        """Return the counts of each tube that has had a task. `counters`: `sums_by_tube` of them."""
        states = await self.sums_by_tube("states")
        return {
            tube: _tube_stats(counters.get(tube, {}), states[tube], await self._oldest_ms(tube, states[tube]))
            for tube in sorted({*counters, *states})
        }

    async def tubes(self) -> Collection[str]:
        """Return the tubes that have had a task."""
        return await self.sums_by_tube("counters")

    async def ready_tasks(self) -> dict[str, int]:
        """Return how many tasks of each tube are ready, behind the first of their lane too; it costs one command."""
        states = await self.sums_by_tube("states")
        return {tube: counts.get("ready", 0) for tube, counts in states.items()}

    async def _size(self, index: str) -> int:
        return sum(await self._store.command_each("ZCARD", self._store.keys_of_shards(index)))

    async def sums_by_tube(self, key: str) -> dict[str, dict[str, int]]:
        """Return tube → name → count of a hash with fields `<tube>:<name>`."""
        sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for counts in await self._store.command_each("HGETALL", self._store.keys_of_shards(key)):
            for field, value in counts.items():
                tube, colon, name = field.rpartition(":")
                if colon:
                    sums[tube][name] += int(value)
        return sums

    def now_ms(self) -> float:
        """Return the time by the server's clock."""
        return time.time() * 1000 + self._store.clock_offset_ms

    async def _overdue_ms(self) -> int:
        heads = await self._store.command_each("ZRANGE", self._store.keys_of_shards("due"), 0, 0, "WITHSCORES")
        dues = [float(head[0][1]) for head in heads if head]
        return max(0, int(self.now_ms() - min(dues))) if dues else 0

    async def _oldest_ms(self, tube: str, states: Mapping[str, int]) -> int:
        """Return the age of the oldest ready task: of each tenant the first task of each priority is compared."""
        if not states.get("ready"):
            return 0
        now = self.now_ms()
        since = [now]
        keys = self._store.keys_of_shards("tenants", tube)
        for shard, tenants in enumerate(await self._store.command_each("ZRANGE", keys, 0, _TENANTS - 1)):
            for found in await asyncio.gather(*(self._ready_since(shard, tube, tenant) for tenant in tenants)):
                since += found
        return int(now - min(since))

    async def _ready_since(self, shard: int, tube: str, tenant: str) -> list[float]:
        """Return the unix ms since when the first task of each priority has been ready."""
        name, score, since = KEYS["ready"].at(shard, tube, tenant), 0, list[float]()
        for _ in range(_PRIORITIES):
            page = await self._store.command("ZRANGEBYSCORE", name, score, "+inf", "WITHSCORES", "LIMIT", 0, 1)
            if not page:
                break
            ((member, found),) = page
            score = (int(float(found)) // PRIORITY_STEP + 1) * PRIORITY_STEP
            since.append(await self._member_ready_since(shard, tube, str(member)))
        return since

    async def _member_ready_since(self, shard: int, tube: str, member: str) -> float:
        if member.startswith("@"):
            member = await self._store.command("HGET", KEYS["head"].at(shard, tube), member[1:]) or ""
        view = await self._view_if_there(shard, member)
        return max(put_ms(member) or self.now_ms(), float(view.due or 0 if view else 0))

    async def peek(self, task_id: str) -> TaskView:
        """Return a task as it is now. Raises NotFound TASK_NOT_FOUND."""
        return await self.view(*split_id(task_id))

    async def view(self, shard: int, name: str) -> TaskView:
        """Return a task by its place. Raises NotFound TASK_NOT_FOUND."""
        if not (task := await self._view_if_there(shard, name)):
            raise NotFound("TASK_NOT_FOUND", "There is no such task.")
        return task

    async def _view_if_there(self, shard: int, name: str) -> TaskView | None:
        """Return None if there is no such task."""
        (task,) = await self.views(shard, [name])
        return task

    async def views(self, shard: int, names: Sequence[str]) -> list[TaskView | None]:
        """Return the tasks as they are now; None for those that are not there."""
        if shard >= self._store.shards:
            return [None] * len(names)
        found: list[TaskView | None] = []
        for start in range(0, len(names), _PAGE):
            page = names[start : start + _PAGE]
            rows = await self._store.run("view_tasks", shard, *page)
            found += [_view_of(shard, name, row) for name, row in zip(page, rows, strict=True)]
        return found

    async def select(self, selected: TaskFilter, limit: int = 1000) -> list[TaskView]:
        """Return the first live tasks that a filter selects, through an index: in the order they were put, but for a
        lane first those that stand in it. Raises Invalid SELECTION_EMPTY.
        """
        found: list[TaskView] = []
        async for _, tasks in self.pages(selected, SearchPosition(), min(limit, _PAGE)):
            found += tasks
            if len(found) >= limit:
                break
        return found[:limit]

    async def page(self, selected: TaskFilter, cursor: str | None, limit: int) -> TaskPage:
        """Return a page of what `select` returns; it may hold fewer than `limit`. Raises Invalid SELECTION_EMPTY,
        CURSOR_MALFORMED.
        """
        async for position, tasks in self.pages(selected, SearchPosition.read(cursor), limit):
            return TaskPage(tasks, str(position))
        return TaskPage((), None)

    async def pages(
        self, selected: TaskFilter, start: SearchPosition, size: int
    ) -> AsyncIterator[tuple[SearchPosition, list[TaskView]]]:
        """Yield (where the page ends, the tasks of the page that the filter selects). Parcels are left out: they are
        found through their delivery.
        """
        async for position, names in self._search.pages(selected, start, size):
            tasks = await self.views(position.shard, names)
            yield position, [task for task in tasks if task and task.history is None and selected.matches(task)]

    async def names(self, index: str, tube: str) -> AsyncIterator[tuple[int, str]]:
        """Yield (shard, name) of the tasks of a tube ("": of all) in an index by time, the earliest first. All names
        are read before the first is yielded, because the caller may remove tasks from the index.
        """
        for shard in range(self._store.shards):
            names = await self._store.command("ZRANGE", KEYS[index].at(shard), 0, -1)
            for start in range(0, len(names), _PAGE):
                page = names[start : start + _PAGE]
                for name, task in zip(page, await self.views(shard, page), strict=True):
                    if not tube or (task and task.tube == tube):
                        yield shard, name

    async def list(self, selected: TaskFilter, cursor: str | None, limit: int) -> TaskPage:
        """Return tasks by state and tube, parcels included, in pages; a page may hold fewer than `limit`. Raises
        Invalid CURSOR_MALFORMED.
        """
        found: list[TaskView] = []
        start, parts = TaskPosition.read(cursor), 0
        async for end, members in self._listing.parts(selected, start):
            tasks = await self._selected(selected, members)
            room, parts = limit - len(found), parts + 1
            found += [task for _, task in tasks[:room]]
            if len(tasks) > room or (tasks and len(tasks) == room):
                return TaskPage(found, tasks[room - 1][0].cursor())
            if parts >= _PARTS:
                return TaskPage(found, end.cursor())
        return TaskPage(found, None)

    async def standing(self, selected: TaskFilter) -> AsyncIterator[tuple[int, Sequence[TaskView]]]:
        """Yield (shard, live tasks that the filter selects), parcels included, from the indexes of their states. A task
        that changes its state meanwhile may be missed.
        """
        async for end, members in self._listing.parts(selected, TaskPosition(), LIVE):
            yield end.shard, [task for _, task in await self._selected(selected, members)]

    async def orders(self) -> Sequence[int]:
        """Return the order of the last task of each shard: tasks that are put later have a greater one."""
        orders = await self._store.command_each("HGET", self._store.keys_of_shards("counters"), "order")
        return [int(order or 0) for order in orders]

    async def _selected(
        self, selected: TaskFilter, members: Sequence[tuple[TaskPosition, str]]
    ) -> Sequence[tuple[TaskPosition, TaskView]]:
        """Return those that the filter selects, with where the list ends if it ends with them."""
        if not members:
            return []
        views = await self.views(members[0][0].shard, [name for _, name in members])
        pairs = zip((position for position, _ in members), views, strict=True)
        return [(position, task) for position, task in pairs if task and selected.matches(task)]


def _view_of(shard: int, name: str, row: Sequence[str]) -> TaskView | None:
    """Read a row of `view_tasks.lua`. A ready task behind the first of its lane is `locked`."""
    if not row:
        return None
    stored = viewed_facts(row)
    first = stored.pop("first", name)
    task = TaskView.read(f"{shard}.{name}", stored)
    if task.state is not TaskState.READY or first == name:
        return task
    return msgspec.structs.replace(task, state=TaskState.LOCKED, waits_for=f"{shard}.{first}")


def _tube_stats(counts: Mapping[str, int], states: Mapping[str, int], oldest_ms: int) -> TubeStats:
    locked = states.get("locked", 0)
    now = {state: states.get(state, 0) for state in StateCounts.__struct_fields__}
    now["ready"] -= locked  # the functions count locked tasks as ready ones, too
    lag = counts.get("lag_ms", 0) / counts["promoted"] if counts.get("promoted") else 0.0
    return TubeStats(
        **{name: counts.get(name, 0) for name in _TRANSITIONS},
        live=counts.get("put", 0) - sum(counts.get(end, 0) for end in _ENDS),  # by conservation (I7)
        states=StateCounts(**now),
        lag_ms=round(lag, 1),
        oldest_ms=oldest_ms,
    )
