"""Finds tasks a page at a time: those that have something in common, or those of a state and tube (K-10).

For user, tenant, kind and tag there is one index each. The tasks of a lane are found where they stand, tube by tube:
those behind the first are read before the first, which is on the last page of its tube. Then the tasks that were put
aside (deferred, parked, buried) are read; they stay in an index of their own until they end. So a task that moves while
pages are read moves towards what is still to be read, and is not missed.

Tasks of a state, parcels included, are listed from the indexes in which their state has put them:

    taken    the leases, by the moment they end         waiting   what is due later, by that moment
    ready    the offers of each tenant, in their order  buried    by the moment of the burial
    locked   the lanes of a tube, each in its order     ended     what is kept, by the moment it is dropped

A page of a list costs the same with a thousand and with a million tasks, and each task has a cursor of its own. A task
that changes its state while pages are read may be listed twice, or not at all.

Called by `core.queue.inspector`.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.errors import cursor_number, malformed_cursor
from core.model.history_key import DEFAULT_TENANT
from core.model.states import TASK_ENDS, TaskState
from core.model.text.characters import from_unreserved, to_unreserved
from core.queue.task import TaskFilter, viewed_facts
from core.redis.keys import KEYS, kind_of
from core.redis.store import Store

_STANDING, _ASIDE = "1", "2"  # sources of a lane, in the order in which they are read
_ALL_READ = "9" * 16

Read = Callable[[str, str, int], Awaitable[tuple[str, Sequence[str]]]]
"""(after which order number, up to which, how many) → (number of the last, names); no names: all were read."""
_PAGE = 100
_LOCKED = str(TaskState.LOCKED)
_ENDED = "ended"
LIVE = (TaskState.TAKEN, TaskState.READY, TaskState.LOCKED, TaskState.WAITING, TaskState.BURIED)
_STATES = (*LIVE, _ENDED)
_INDEXES = {TaskState.TAKEN: "lease", TaskState.WAITING: "due", TaskState.BURIED: "buried", _ENDED: "finished"}
_ORDER_MARK = "order:"  # of a delivery in the due index, which is no task


@dataclass(frozen=True, slots=True)
class SearchPosition:
    """The end of a page of a search: the shard, the source in it and the order number in that."""

    shard: int = 0
    after: str = "-inf"
    source: str = ""

    def __str__(self) -> str:
        return f"{self.shard}-{self.after}-{to_unreserved(self.source)}"

    @classmethod
    def read(cls, cursor: str | None) -> "SearchPosition":
        """Read a cursor made by `str`; None: the start. Raises Invalid CURSOR_MALFORMED."""
        if cursor is None:
            return cls()
        if not (found := re.fullmatch(r"([0-9]{1,5})-([0-9]{1,16})-(.*)", cursor)):
            raise malformed_cursor()
        return cls(int(found[1]), found[2], from_unreserved(found[3]))


class TaskSearch:
    """One per store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def pages(
        self, selected: TaskFilter, start: SearchPosition, size: int
    ) -> AsyncIterator[tuple[SearchPosition, Sequence[str]]]:
        """Yield (where the page ends, names of tasks in the index). Tasks put after the first page of a shard was read
        are left out. Raises Invalid SELECTION_EMPTY.
        """
        field, value = selected.index()
        for shard in range(start.shard, self._store.shards):
            end = str(await self._store.command("HGET", KEYS["counters"].at(shard), "order") or 0)
            for source, read in sorted((await self._sources(shard, field, value)).items()):
                if shard == start.shard and source < start.source:
                    continue
                after = start.after if (shard, source) == (start.shard, start.source) else "-inf"
                while True:
                    after, names = await read(after, end, size)
                    if not names:
                        break
                    yield SearchPosition(shard, after, source), names

    async def _sources(self, shard: int, field: str, value: str) -> dict[str, Read]:
        """Return name → reader of the sources, which are read in the order of their names."""
        if field == "kind":
            kinds = await self._kinds(shard, value)
            return {kind: self._scored(KEYS["by"].at(shard, "kind", kind)) for kind in kinds}
        if field == "lane":
            return await self._of_lane(shard, value)
        if (field, value) == ("tenant", DEFAULT_TENANT):
            return {value: self._all(shard)}
        return {value: self._scored(KEYS["by"].at(shard, field, value))}

    async def _of_lane(self, shard: int, lane: str) -> dict[str, Read]:
        aside = KEYS["by"].at(shard, "lane", lane)
        sources = {_ASIDE: self._scored(aside)}
        for tube in await self._tubes(shard):
            sources[_STANDING + tube] = self._without(aside, self._standing(shard, tube, lane))
        return sources

    async def _kinds(self, shard: int, prefix: str) -> list[str]:
        """Return the kinds of live tasks that begin with `prefix`."""
        end = prefix.encode() + b"\xff"
        return [
            str(kind)
            for kind in await self._store.command("ZRANGEBYLEX", KEYS["kinds"].at(shard), f"[{prefix}", b"(" + end)
        ]

    async def _tubes(self, shard: int) -> set[str]:
        """Return the tubes that have had a task."""
        counted = await self._store.command("HKEYS", KEYS["states"].at(shard))
        return {name.rpartition(":")[0] for name in counted}

    def _scored(self, index: str) -> Read:
        async def read(after: str, end: str, size: int) -> tuple[str, Sequence[str]]:
            page = await self._store.command("ZRANGEBYSCORE", index, f"({after}", end, "WITHSCORES", "LIMIT", 0, size)
            return (f"{page[-1][1]:.0f}", [name for name, _ in page]) if page else (after, ())

        return read

    def _all(self, shard: int) -> Read:
        """Return a reader of all tasks, in no order. Most tasks have the default tenant, so no index names it."""

        async def read(after: str, end: str, size: int) -> tuple[str, Sequence[str]]:
            while after != _ALL_READ:
                start = after if after.isdecimal() else 0
                position, names = await scan_tasks(self._store, shard, int(start), size)
                after = str(position) if position else _ALL_READ
                if names:
                    return after, names
            return after, ()

        return read

    def _standing(self, shard: int, tube: str, lane: str) -> Read:
        behind = self._scored(KEYS["lane"].at(shard, tube, lane))

        async def read(after: str, end: str, size: int) -> tuple[str, Sequence[str]]:
            if after == _ALL_READ:
                return after, ()
            after, names = await behind(after, end, size)
            if len(names) == size:
                return after, names
            first = await self._first(shard, tube, lane, int(end))
            return _ALL_READ, [first, *names] if first else names

        return read

    async def _first(self, shard: int, tube: str, lane: str, end: int) -> str | None:
        """Return the first task of a lane; None if the lane is empty, or was, and got its first task after `end`."""
        first = await self._store.command("HGET", KEYS["head"].at(shard, tube), lane)
        if not first:
            return None
        (row,) = await self._store.run("view_tasks", shard, first)
        order = viewed_facts(row).get("order")
        return str(first) if order and int(order) <= end else None

    def _without(self, aside: str, source: Read) -> Read:
        """Return a reader of `source` that leaves out the tasks of the index `aside`, which are read later. It skips
        pages of which nothing is left.
        """

        async def read(after: str, end: str, size: int) -> tuple[str, Sequence[str]]:
            while True:
                after, names = await source(after, end, size)
                scores = await self._store.command("ZMSCORE", aside, *names) if names else ()
                standing = [name for name, score in zip(names, scores, strict=True) if score is None]
                if standing or not names:
                    return after, standing

        return read


async def scan_tasks(store: Store, shard: int, position: int, count: int) -> tuple[int, list[str]]:
    """Return (next position, names of about `count` tasks), in no order. Position 0 is the begin, and again the end."""
    pattern, prefix = KEYS["task"].at(shard, "*").replace("{", "[{]"), len(KEYS["task"].at(shard, ""))
    cursor, keys = await store.command_at(shard, "SCAN", position, "MATCH", pattern, "COUNT", max(count, 10))
    return int(cursor), [key[prefix:] for key in keys if kind_of(key) is KEYS["task"]]


class TaskPosition(NamedTuple):
    """The end of a page: in a shard, in one of its sources, after a member of it ("": before the first)."""

    shard: int = 0
    source: str = ""
    after: str = ""

    def cursor(self) -> str:
        """Return the position as a client gets it."""
        place = to_unreserved(f"{self.source[1:]}\n{self.after}")
        return f"{self.shard}-{self.source[0]}-{place}"

    @classmethod
    def read(cls, cursor: str | None) -> "TaskPosition":
        """Read what `cursor` returned; None: the beginning. Raises Invalid CURSOR_MALFORMED."""
        if cursor is None:
            return cls()
        if not (found := re.fullmatch(r"([0-9]{1,5})-([0-9]{1,16})-(.*)", cursor)):
            raise malformed_cursor()
        rest, _, after = from_unreserved(found[3]).partition("\n")
        return cls(int(found[1]), found[2] + rest, after)


class ListingPart(NamedTuple):
    """The result of one read of a source: (where it ends if it ends with this task, task), …, and where the next read
    begins, None at the end of the source.
    """

    found: Sequence[tuple[str, str]]
    next: str | None


ReadParts = Callable[[str], Awaitable[ListingPart]]


class TaskListing:
    """One per store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def parts(
        self, selected: TaskFilter, start: TaskPosition, states: Sequence[str] = _STATES
    ) -> AsyncIterator[tuple[TaskPosition, list[tuple[TaskPosition, str]]]]:
        """Yield (where the part ends, its tasks with their own positions). A part may hold no task that the filter
        selects.
        """
        for shard in range(start.shard, self._store.shards):
            for source, read in (await self._sources(shard, selected, states)).items():
                if shard == start.shard and source < start.source:
                    continue
                after: str | None = start.after if (shard, source) == start[:2] else ""
                while after is not None:
                    found, after = await read(after)
                    tasks = [(TaskPosition(shard, source, one), name) for one, name in found]
                    end = (
                        TaskPosition(shard, source, after) if after is not None else TaskPosition(shard, source + "\0")
                    )
                    yield end, tasks

    async def _sources(self, shard: int, selected: TaskFilter, states: Sequence[str]) -> dict[str, ReadParts]:
        """Return name → reader of the sources that may have such tasks, in the order of their names."""
        counts = await self._store.command("HGETALL", KEYS["states"].at(shard))
        sources: dict[str, ReadParts] = {}
        for n, state in enumerate(states):
            if selected.state and selected.state != state and not (state == _ENDED and selected.state in TASK_ENDS):
                continue
            tubes = [tube for tube in _tubes_with(state, counts) if selected.tube in ("", tube)]
            if state in _INDEXES:
                if tubes or state == _ENDED:
                    sources[str(n)] = self._by_time(KEYS[_INDEXES[state]].at(shard))
                continue
            for tube in sorted(tubes):
                if state == _LOCKED:
                    sources[f"{n}{tube}"] = self._locked(shard, tube)
                else:
                    sources |= await self._ready(shard, f"{n}{tube}", tube, selected.tenant)
        return sources

    async def _ready(self, shard: int, source: str, tube: str, tenant: str) -> dict[str, ReadParts]:
        """Return a reader of the offers of each tenant. A lane is offered as `@lane`: its first task stands for it."""
        tenants = [tenant] if tenant else await self._store.command("ZRANGE", KEYS["tenants"].at(shard, tube), 0, -1)
        return {f"{source}\t{one}": self._offers(shard, tube, one) for one in sorted(tenants)}

    def _offers(self, shard: int, tube: str, tenant: str) -> ReadParts:
        async def read(after: str) -> ListingPart:
            part = await self._members(KEYS["ready"].at(shard, tube, tenant), after)
            lanes = [member[1:] for _, member in part.found if member.startswith("@")]
            firsts = await self._store.command("HMGET", KEYS["head"].at(shard, tube), *lanes) if lanes else []
            first_of = {f"@{lane}": first for lane, first in zip(lanes, firsts, strict=True)}
            named = [(one, first_of.get(member, member)) for one, member in part.found]
            return ListingPart([(one, name) for one, name in named if name], part.next)

        return read

    def _by_time(self, index: str) -> ReadParts:
        async def read(after: str) -> ListingPart:
            found, end = await self._members(index, after)
            return ListingPart([one for one in found if not one[1].startswith(_ORDER_MARK)], end)

        return read

    async def _members(self, index: str, after: str) -> ListingPart:
        """Read on in a sorted set. `after`: score and name of a member, because many may have one score."""
        start = await self._rank_after(index, after) if after else 0
        rows = await self._store.command("ZRANGE", index, start, start + _PAGE - 1, "WITHSCORES")
        found = [(f"{score:.0f} {member}", str(member)) for member, score in rows]
        return ListingPart(found, found[-1][0] if len(found) == _PAGE else None)

    async def _rank_after(self, index: str, after: str) -> int:
        """Return the rank behind a member; if it has left or moved, of the first member that has its former score."""
        score, _, member = after.partition(" ")
        rank, found, before = await asyncio.gather(
            self._store.command("ZRANK", index, member),
            self._store.command("ZSCORE", index, member),
            self._store.command("ZCOUNT", index, "-inf", f"({cursor_number(score)}"),
        )
        return int(rank) + 1 if rank is not None and float(found) == float(score) else int(before)

    def _locked(self, shard: int, tube: str) -> ReadParts:
        """Return a reader of the tasks behind the first ones: lane by lane, in the order in which HSCAN finds lanes.
        `after`: where HSCAN found the lane, the lane and the order of the task.
        """

        async def read(after: str) -> ListingPart:
            position, lane, order = _place_in_lanes(after)
            scanned, rows = await self._store.command("HSCAN", KEYS["head"].at(shard, tube), position, "COUNT", _PAGE)
            lanes = sorted(one for one in rows[::2] if one >= lane)
            pages = await asyncio.gather(
                *(self._behind(shard, tube, one, order if one == lane else "-inf") for one in lanes)
            )
            found = list[tuple[str, str]]()
            for one, page in zip(lanes, pages, strict=True):
                found += [(f"{position} {score:.0f} {one}", str(name)) for name, score in page]
                if len(found) >= _PAGE:
                    return ListingPart(found, found[-1][0])
            return ListingPart(found, str(scanned) if int(scanned) else None)

        return read

    async def _behind(self, shard: int, tube: str, lane: str, order: str) -> Sequence[tuple[str, float]]:
        key = KEYS["lane"].at(shard, tube, lane)
        return list(
            await self._store.command("ZRANGEBYSCORE", key, f"({order}", "+inf", "WITHSCORES", "LIMIT", 0, _PAGE)
        )


def _tubes_with(state: str, counts: dict[str, str]) -> list[str]:
    """Return the tubes that have tasks in this state, by the counters."""
    suffix = f":{state}"
    return [name.removesuffix(suffix) for name, n in counts.items() if name.endswith(suffix) and int(n) > 0]


def _place_in_lanes(after: str) -> tuple[str, str, str]:
    """Return (position of HSCAN, lane, order after which tasks are read there). Raises Invalid CURSOR_MALFORMED."""
    position, _, rest = after.partition(" ")
    order, _, lane = rest.partition(" ")
    return str(cursor_number(position)), lane, str(cursor_number(order)) if order else "-inf"
