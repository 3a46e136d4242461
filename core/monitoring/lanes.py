"""The lanes of the queue: the longest ones, and one in its order (W-13).

No index has the lengths of lanes, because each put and each end would have to change it. So the lanes of tubes in which
tasks are locked are read, a bounded number of them; `is_complete`: whether these were all (docs/decisions/0106).
"""

from collections.abc import AsyncIterator, Sequence
from heapq import nlargest

import msgspec

from core.errors import NotFound
from core.queue import Queue, TaskView
from core.queue.task_search import SearchPosition
from core.redis.keys import KEYS
from core.redis.store import Store

# Lanes that one answer is made of, and those that one call of the server reads.
MOST_READ, _PAGE = 20_000, 500


class LaneView(msgspec.Struct, frozen=True):
    """A lane. `tasks`: how many stand in it, the first one included. `head`: the first; None if it has just ended."""

    tube: str
    lane: str
    tasks: int
    head: TaskView | None


class LongestLanes(msgspec.Struct, frozen=True):
    """`lanes`: the longest first. `read`: how many lanes were looked at; `is_complete`: whether these were all."""

    lanes: Sequence[LaneView]
    read: int
    is_complete: bool


class LanePage(msgspec.Struct, frozen=True):
    """Tasks of a lane in its order. `behind`: how many stand behind the first. `next`: the cursor of the next page."""

    tasks: Sequence[TaskView]
    behind: int
    next: str | None


class Lanes:
    """Reads the lanes of all tubes."""

    def __init__(self, store: Store, queue: Queue) -> None:
        self._store = store
        self._queue = queue

    async def longest(self, tube: str, limit: int) -> LongestLanes:
        """Return the longest lanes of one tube, or of all ("")."""
        rows, read, is_complete = list[tuple[int, int, str, str, str]](), 0, True
        for shard, name in await self._tubes(tube):
            async for count, found in self._pages(shard, name):
                if read >= MOST_READ:
                    is_complete = False
                    break
                read += count
                rows = nlargest(limit, [*rows, *((behind, shard, name, lane, head) for lane, head, behind in found)])
        return LongestLanes([await self._view(*row) for row in rows], read, is_complete)

    async def _tubes(self, tube: str) -> list[tuple[int, str]]:
        """Return (shard, tube) where tasks stand behind others."""
        found = []
        for shard, counts in enumerate(await self._store.command_each("HGETALL", self._store.keys_of_shards("states"))):
            names = [name.removesuffix(":locked") for name, n in counts.items() if name.endswith(":locked") and int(n)]
            found += [(shard, name) for name in sorted(names) if tube in ("", name)]
        return found

    async def _pages(self, shard: int, tube: str) -> AsyncIterator[tuple[int, list[tuple[str, str, int]]]]:
        """Yield (lanes read, [(lane, first task, tasks behind it), …])."""
        position = "0"
        while True:
            position, read, *flat = await self._store.run("view_lanes", shard, tube, position, _PAGE)
            yield int(read), list(zip(flat[::3], flat[1::3], map(int, flat[2::3]), strict=True))
            if position == "0":
                return

    async def _view(self, behind: int, shard: int, tube: str, lane: str, head: str) -> LaneView:
        try:
            first = await self._queue.inspector.peek(f"{shard}.{head}")
        except NotFound:
            return LaneView(tube, lane, behind, None)
        return LaneView(tube, lane, behind + 1, first)

    async def show(self, tube: str, lane: str, cursor: str | None, limit: int) -> LanePage:
        """Return a page of a lane, its first task first. Raises Invalid CURSOR_MALFORMED."""
        shard, after = self._store.shard_of(lane), SearchPosition.read(cursor).after
        behind = KEYS["lane"].at(shard, tube, lane)
        names = list[str]()
        if cursor is None and (head := await self._store.command("HGET", KEYS["head"].at(shard, tube), lane)):
            names.append(head)
        room = limit - len(names)
        page = await self._store.command(
            "ZRANGEBYSCORE", behind, f"({after}" if cursor else after, "+inf", "WITHSCORES", "LIMIT", 0, room
        )
        tasks = [
            task for task in await self._queue.inspector.views(shard, [*names, *(name for name, _ in page)]) if task
        ]
        end = f"{page[-1][1]:.0f}" if page else "0"
        size = int(await self._store.command("ZCARD", behind))
        return LanePage(tasks, size, str(SearchPosition(shard, end)) if size and len(page) == room else None)
