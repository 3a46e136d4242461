"""What each part of `bench queue` stands on: a fresh server, our own connection to it, and its processes."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness.child import Child
from bench.harness.cost import cpu_of
from bench.harness.ground import START, Ground, ground
from bench.harness.rows import Row, say
from bench.queue.meter import counted, until
from bench.queue.samples import TUBE
from bench.queue.worker import GO
from core.queue.client import QueueClient
from core.redis.store import Store

FILLERS, UNDER_WAY, PAGE = 2, 4, 200
_LONGEST = 1800.0
CONCURRENCY = 400


@dataclass(frozen=True, slots=True)
class Spent:
    """What so many tasks took: seconds, and those of CPU of the process (or processes) and of the server."""

    count: int
    seconds: float
    cpu: float
    store_cpu: float

    def row(self, part: str, system: str) -> Row:
        each = 1e6 / self.count
        return {
            "part": part,
            "system": system,
            "n": self.count,
            "tasks_per_s": round(self.count / self.seconds),
            "python_us": round(self.cpu * each, 1),
            "store_us": round(self.store_cpu * each, 1),
            "store_cpu_percent": round(100 * self.store_cpu / self.seconds),
        }


class Stage:
    """See the module."""

    def __init__(self, place: Ground, store: Store) -> None:
        self.place = place
        self.redis = place.redis
        self.work = QueueClient(store)
        self.queue = self.work.queue

    async def fill(self, shape: str, count: int, at: int = 0, tube: str = TUBE) -> None:
        """Puts so many tasks, by two processes. `at`: the moment (Unix ms) at which deferred ones are due."""
        began = time.monotonic()
        edges = [count * n // FILLERS for n in range(FILLERS + 1)]
        shares = list(itertools.pairwise(edges))
        await asyncio.gather(*(self._put(tube, shape, first, end, count, at, UNDER_WAY, PAGE) for first, end in shares))
        say(f"{count:,} tasks put in {time.monotonic() - began:.1f} s")

    async def put(self, shape: str, count: int, callers: int, page: int) -> Spent:
        """Tasks put by one process."""
        before = cpu_of(self.place.store.pid)
        seconds, cpu = await self._put(TUBE, shape, 0, count, count, 0, callers, page)
        return Spent(count, seconds, cpu, cpu_of(self.place.store.pid) - before)

    async def _put(
        self, tube: str, shape: str, first: int, end: int, many: int, at: int, callers: int, page: int
    ) -> tuple[float, float]:
        words = (str(word) for word in (first, end, many, at, callers, page))
        filler = await self.place.start("fill", "bench.queue.fill", self.place.url, tube, shape, *words)
        facts = await filler.facts(_LONGEST)
        await self.place.end(filler)
        return facts["seconds"], facts["cpu"]

    async def start(self, program: str, *words: str) -> Child:
        """A process that says when it is ready and tells what it saw when it is ended."""
        child = await self.place.start(program, f"bench.queue.{program}", self.place.url, *words)
        await child.facts(START)
        return child

    async def start_worker(self, held: bool = False) -> Child:
        return await self.start("worker", str(CONCURRENCY), "held" if held else "free")

    async def go(self, workers: int) -> None:
        await self.redis.rpush(GO, *(["go"] * workers))

    async def end(self, child: Child) -> Any:
        """What it saw."""
        await self.place.end(child)
        return await child.facts(START)

    async def all_done(self, count: int, within: float = _LONGEST) -> float:
        """The moment (Unix ms) at which so many tasks were done."""

        async def are_done() -> bool:
            return await counted(self.redis, TUBE, "done") >= count

        return await until(are_done, within, f"the end of {count:,} tasks")


@asynccontextmanager
async def staged(program: Path | None = None) -> AsyncIterator[Stage]:
    """A fresh one. `program`: another server than the embedded one."""
    async with ground(program) as place:
        store = await Store.open(f"{place.url}?client_name=bench")
        try:
            yield Stage(place, store)
        finally:
            await store.close()


def within(pairs: Sequence[Sequence[float]], begin: float, end: float) -> list[float]:
    """The values of those (moment ms, value) that began in that time."""
    return [value for moment, value in pairs if begin <= moment < end]
