"""Finds the tasks that have something in common, through an index, a page at a time (K-10).

For user, tenant, kind and tag there is one index each. The tasks of a lane are found where they stand, tube by tube:
those behind the first are read before the first, which is on the last page of its tube. Then the tasks that were put
aside (deferred, parked, buried) are read; they stay in an index of their own until they end. So a task that moves while
pages are read moves towards what is still to be read, and is not missed.

Called by `core.queue.inspector`.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from core.errors import malformed_cursor
from core.model.history_key import DEFAULT_TENANT
from core.model.text.characters import from_unreserved, to_unreserved
from core.queue.task import TaskFilter, viewed_facts
from core.redis.keys import KEYS, kind_of
from core.redis.store import Store

_STANDING, _ASIDE = "1", "2"  # sources of a lane, in the order in which they are read
_ALL_READ = "9" * 16

Read = Callable[[str, str, int], Awaitable[tuple[str, Sequence[str]]]]
"""(after which order number, up to which, how many) → (number of the last, names); no names: all were read."""


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
