"""The environment of `bench queue`: the sizes, a fresh server, a queue client, and the processes of `programs`."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness.environment import START_TIMEOUT, ChildProcess, Environment, environment
from bench.harness.measurements import cpu_seconds, transition_count, wait_until
from bench.harness.report import Row, log_progress
from bench.queue.programs import GO, TUBE
from core.queue import QueueClient
from core.redis.store import Store


@dataclass(frozen=True, slots=True)
class QueueSizes:
    """`locked`: lanes; the others: tasks. `samples`: claims that are timed. `latency_s`: seconds for which
    tasks are put.
    """

    locked: tuple[int, ...] = (1, 1_000, 100_000)
    deferred: int = 1_000_000
    lane: int = 100_000
    samples: int = 2_000
    due: tuple[int, ...] = (1_000, 100_000)
    cancelled: int = 100_000
    drained: int = 100_000
    weighed: int = 20_000
    audited: int = 100_000
    put: int = 40_000
    bulk: int = 100_000
    worked: int = 60_000
    rounds: int = 2
    trivial_s: float = 2.0
    latency_s: float = 20.0
    quiet_s: float = 5.0


FULL = QueueSizes()
SHORT = QueueSizes(
    locked=(1, 100, 1_000),
    deferred=5_000,
    lane=1_000,
    samples=100,
    due=(200, 2_000),
    cancelled=1_000,
    drained=1_000,
    weighed=1_000,
    audited=1_000,
    put=500,
    bulk=2_000,
    worked=1_000,
    rounds=1,
    trivial_s=0.2,
    latency_s=1.0,
    quiet_s=0.5,
)


FILLERS, CONCURRENT_PAGES, PAGE = 2, 4, 200
CONCURRENCY = 400
PROGRAMS = "bench.queue.programs"
_TIMEOUT = 1800.0


@dataclass(frozen=True, slots=True)
class WorkCost:
    """The cost of `count` tasks: seconds, CPU seconds of the Python processes, CPU seconds of the server."""

    count: int
    seconds: float
    cpu: float
    server_cpu: float

    def row(self, part: str, system: str) -> Row:
        us_per_task = 1e6 / self.count
        return {
            "part": part,
            "system": system,
            "n": self.count,
            "tasks_per_s": round(self.count / self.seconds),
            "python_us": round(self.cpu * us_per_task, 1),
            "store_us": round(self.server_cpu * us_per_task, 1),
            "store_cpu_percent": round(100 * self.server_cpu / self.seconds),
        }


class QueueEnvironment:
    """Made by `queue_environment()`. `base` is the environment of every benchmark."""

    def __init__(self, base: Environment, store: Store) -> None:
        self.base = base
        self.redis = base.redis
        self.queue = QueueClient(store).queue

    async def fill(self, shape: str, count: int, due_ms: int = 0, tube: str = TUBE) -> None:
        """Puts `count` tasks by two processes. `due_ms`: when deferred ones are due (Unix ms)."""
        began = time.monotonic()
        edges = [count * n // FILLERS for n in range(FILLERS + 1)]
        ranges = list(itertools.pairwise(edges))
        await asyncio.gather(
            *(self._put(tube, shape, first, end, count, due_ms, CONCURRENT_PAGES, PAGE) for first, end in ranges)
        )
        log_progress(f"{count:,} tasks put in {time.monotonic() - began:.1f} s")

    async def put(self, shape: str, count: int, callers: int, page: int) -> WorkCost:
        """Puts `count` tasks by one process."""
        before = cpu_seconds(self.base.server.pid)
        seconds, cpu = await self._put(TUBE, shape, 0, count, count, 0, callers, page)
        return WorkCost(count, seconds, cpu, cpu_seconds(self.base.server.pid) - before)

    async def _put(
        self, tube: str, shape: str, first: int, end: int, total: int, due_ms: int, callers: int, page: int
    ) -> tuple[float, float]:
        numbers = (str(number) for number in (first, end, total, due_ms, callers, page))
        filler = await self.base.start("fill", PROGRAMS, "fill", self.base.url, tube, shape, *numbers)
        facts = await filler.facts(_TIMEOUT)
        await self.base.stop_child(filler)
        return facts["seconds"], facts["cpu"]

    async def start(self, program: str, *args: str) -> ChildProcess:
        """Starts one of `bench.queue.programs` and waits until it is ready."""
        child = await self.base.start(program, PROGRAMS, program, self.base.url, *args)
        await child.facts(START_TIMEOUT)
        return child

    async def start_worker(self, wait_for_go: bool = False) -> ChildProcess:
        return await self.start("worker", str(CONCURRENCY), "wait" if wait_for_go else "now")

    async def go(self, workers: int) -> None:
        await self.redis.rpush(GO, *(["go"] * workers))

    async def stop(self, child: ChildProcess) -> Any:
        """Stops a process and returns what it measured."""
        await self.base.stop_child(child)
        return await child.facts(START_TIMEOUT)

    async def all_done(self, count: int, timeout: float = _TIMEOUT) -> float:
        """Waits until `count` tasks of the tube are done; returns that moment (Unix ms)."""

        async def are_done() -> bool:
            return await transition_count(self.redis, TUBE, "done") >= count

        return await wait_until(are_done, timeout, f"the end of {count:,} tasks")


@asynccontextmanager
async def queue_environment(program: Path | None = None, *, over_tcp: bool = False) -> AsyncIterator[QueueEnvironment]:
    """Open a fresh environment. `program` and `over_tcp`: as `environment` has them."""
    async with environment(program, over_tcp=over_tcp) as base:
        store = await Store.open(f"{base.url}?client_name=bench")
        try:
            yield QueueEnvironment(base, store)
        finally:
            await store.close()


def values_between(pairs: Sequence[Sequence[float]], begin: float, end: float) -> list[float]:
    """Return the values of the pairs (moment ms, value) with begin ≤ moment < end."""
    return [value for moment, value in pairs if begin <= moment < end]
