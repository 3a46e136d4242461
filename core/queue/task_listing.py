"""Lists tasks by their state and tube, parcels included, from the indexes in which their state has put them.

    taken    the leases, by the moment they end         waiting   what is due later, by that moment
    ready    the offers of each tenant, in their order  buried    by the moment of the burial
    locked   the lanes of a tube, each in its order     ended     what is kept, by the moment it is dropped

A page costs the same with a thousand and with a million tasks, and each task has a cursor of its own. A task that
changes its state while pages are read may be listed twice, or not at all.

Called by `core.queue.inspector`.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NamedTuple

from core.errors import cursor_number, malformed_cursor
from core.model.states import TASK_ENDS, TaskState
from core.model.text.characters import from_unreserved, to_unreserved
from core.queue.task import TaskFilter
from core.redis.keys import KEYS
from core.redis.store import Store

_PAGE = 100
_LOCKED = str(TaskState.LOCKED)
_ENDED = "ended"
LIVE = (TaskState.TAKEN, TaskState.READY, TaskState.LOCKED, TaskState.WAITING, TaskState.BURIED)
_STATES = (*LIVE, _ENDED)
_INDEXES = {TaskState.TAKEN: "lease", TaskState.WAITING: "due", TaskState.BURIED: "buried", _ENDED: "finished"}
_ORDER_MARK = "order:"  # of a delivery in the due index, which is no task


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


Read = Callable[[str], Awaitable[ListingPart]]


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

    async def _sources(self, shard: int, selected: TaskFilter, states: Sequence[str]) -> dict[str, Read]:
        """Return name → reader of the sources that may have such tasks, in the order of their names."""
        counts = await self._store.command("HGETALL", KEYS["states"].at(shard))
        sources: dict[str, Read] = {}
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

    async def _ready(self, shard: int, source: str, tube: str, tenant: str) -> dict[str, Read]:
        """Return a reader of the offers of each tenant. A lane is offered as `@lane`: its first task stands for it."""
        tenants = [tenant] if tenant else await self._store.command("ZRANGE", KEYS["tenants"].at(shard, tube), 0, -1)
        return {f"{source}\t{one}": self._offers(shard, tube, one) for one in sorted(tenants)}

    def _offers(self, shard: int, tube: str, tenant: str) -> Read:
        async def read(after: str) -> ListingPart:
            part = await self._members(KEYS["ready"].at(shard, tube, tenant), after)
            lanes = [member[1:] for _, member in part.found if member.startswith("@")]
            firsts = await self._store.command("HMGET", KEYS["head"].at(shard, tube), *lanes) if lanes else []
            first_of = {f"@{lane}": first for lane, first in zip(lanes, firsts, strict=True)}
            named = [(one, first_of.get(member, member)) for one, member in part.found]
            return ListingPart([(one, name) for one, name in named if name], part.next)

        return read

    def _by_time(self, index: str) -> Read:
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

    def _locked(self, shard: int, tube: str) -> Read:
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
