"""The tasks that have something in common, a page of an index at a time (K-10).

By user, tenant, kind and tag there is an index of its own. By lane they are found where they stand, in each tube: those
behind the first are read before the first, who leads the last page of them; then those who were put aside (deferred,
parked, buried), who are noted until their end, wherever they are by then. So whoever moves while pages are read moves
towards what is still to be read.

Before: `core.queue.inspector`. After: the store.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from core.errors import malformed_cursor
from core.queue.task import TaskFilter
from core.redis.keys import KEYS
from core.redis.store import Store

_STANDING, _ASIDE = "1", "2"  # the order in which a lane is read
_ALL_READ = "9" * 16

Read = Callable[[str, str, int], Awaitable[tuple[str, Sequence[str]]]]
"""(after which number, up to which, how many) → (number of the last, names); no names: this was all."""


@dataclass(frozen=True, slots=True)
class SearchPosition:
    """Where a page of a selection ends: in which shard, after which number of which source."""

    shard: int = 0
    after: str = "-inf"
    source: str = ""

    def __str__(self) -> str:
        return f"{self.shard}-{self.after}-{quote(self.source, safe='')}"

    @classmethod
    def read(cls, cursor: str | None) -> "SearchPosition":
        """Raises Invalid CURSOR_MALFORMED."""
        if cursor is None:
            return cls()
        if not (found := re.fullmatch(r"(\d{1,5})-(\d{1,16})-(.*)", cursor)):
            raise malformed_cursor()
        return cls(int(found[1]), found[2], unquote(found[3]))


class TaskSearch:
    """One per store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def pages(
        self, selection: TaskFilter, start: SearchPosition, size: int
    ) -> AsyncIterator[tuple[SearchPosition, Sequence[str]]]:
        """(where the page ends, the tasks an index names); what is put after the first page of a shard is not seen.
        Raises Invalid SELECTION_EMPTY.
        """
        field, value = selection.index()
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
        """What is to be read one after the other, in the order of their names."""
        if field == "kind":
            kinds = await self._kinds(shard, value)
            return {kind: self._scored(KEYS["by"].at(shard, "kind", kind)) for kind in kinds}
        if field == "lane":
            return await self._of_lane(shard, value)
        return {value: self._scored(KEYS["by"].at(shard, field, value))}

    async def _of_lane(self, shard: int, lane: str) -> dict[str, Read]:
        aside = KEYS["by"].at(shard, "lane", lane)
        sources = {_ASIDE: self._scored(aside)}
        for tube in await self._tubes(shard):
            sources[_STANDING + tube] = self._without(aside, self._standing(shard, tube, lane))
        return sources

    async def _kinds(self, shard: int, prefix: str) -> list[str]:
        """The kinds that live tasks have and that begin so."""
        end = prefix.encode() + b"\xff"
        return [
            str(kind)
            for kind in await self._store.command("ZRANGEBYLEX", KEYS["kinds"].at(shard), f"[{prefix}", b"(" + end)
        ]

    async def _tubes(self, shard: int) -> set[str]:
        """Those that ever had a task."""
        counted = await self._store.command("HKEYS", KEYS["states"].at(shard))
        return {name.rpartition(":")[0] for name in counted}

    def _scored(self, index: str) -> Read:
        async def read(after: str, end: str, size: int) -> tuple[str, Sequence[str]]:
            page = await self._store.command("ZRANGEBYSCORE", index, f"({after}", end, "WITHSCORES", "LIMIT", 0, size)
            return (f"{page[-1][1]:.0f}", [name for name, _ in page]) if page else (after, ())

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
        """None also if it came after `end`, into a lane that had become empty."""
        first = await self._store.command("HGET", KEYS["front"].at(shard, tube), lane)
        order = first and await self._store.command("HGET", KEYS["task"].at(shard, first), "order")
        return str(first) if order and int(order) <= end else None

    def _without(self, aside: str, source: Read) -> Read:
        """Those of `source` who come later: a page may be empty, and is no end then."""

        async def read(after: str, end: str, size: int) -> tuple[str, Sequence[str]]:
            while True:
                after, names = await source(after, end, size)
                scores = await self._store.command("ZMSCORE", aside, *names) if names else ()
                standing = [name for name, score in zip(names, scores, strict=True) if score is None]
                if standing or not names:
                    return after, standing

        return read
