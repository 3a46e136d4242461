"""The processes of `bench jobs`, and the jobs that they run."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from bench.harness.child_process import ChildProcess
from bench.harness.environment import Environment, environment
from bench.jobs.sizes import Sizes
from core.jobs import JobId, JobRecord, Jobs, JobState, StoredJob
from core.redis.store import Store

TENANT = "university"
PROCESSES = 2
_CALLERS = 32


class Note(NamedTuple):
    """A line of the file BENCH_JOBS. `what`: begin or end; `at`: Unix ms."""

    what: str
    process: int
    user: str
    at: float


@dataclass(frozen=True, slots=True)
class Bench:
    """A server with two processes that run jobs."""

    env: Environment
    jobs: Jobs
    processes: list[ChildProcess]

    def notes(self) -> list[Note]:
        """Return what the iterations of busy jobs have noted so far."""
        lines = (self.env.directory / "notes").read_text().splitlines()
        return [Note(what, int(process), user, float(at)) for what, process, user, at in map(str.split, lines)]


@asynccontextmanager
async def running_jobs(sizes: Sizes) -> AsyncIterator[Bench]:
    async with environment() as env:
        notes = env.directory / "notes"
        notes.touch()
        env.variables |= {
            "ADA_JOBS": "bench.jobs.kinds",
            "ADA_LEASE": f"{sizes.lease}s",
            "BENCH_JOBS": str(notes),
            "BENCH_PERIOD": str(sizes.jobs / sizes.rate),
            "BENCH_TAKES": str(sizes.takes),
        }
        processes = [(await env.start_command("jobs"))[0] for _ in range(PROCESSES)]
        store = await Store.open(f"{env.url}?client_name=bench")
        try:
            yield Bench(env, Jobs(store), processes)
        finally:
            await store.close()


async def start_idle(jobs: Jobs, numbers: Iterable[int]) -> None:
    await _by_callers(jobs.start(JobId(TENANT, "idle", str(n)), {"query": "teacher"}) for n in numbers)


async def store_busy(jobs: Jobs, count: int, first: int, period: float) -> None:
    """Stores jobs that run from the moment `first` (ms) on, spread evenly over their period (s)."""
    await _by_callers(jobs.storage.save(_busy(n, due_of(n, count, first, period))) for n in range(count))


def due_of(number: int, count: int, first: int, period: float) -> int:
    return first + round(1000 * period * number / count)


def _busy(number: int, due: int) -> StoredJob:
    record = JobRecord(JobState.RUNNING, generation=1, anchor=due, due=due, created=due, changed=due)
    return StoredJob(JobId(TENANT, "busy", str(number)), record)


async def _by_callers(calls: Iterable[Awaitable[object]]) -> None:
    pending: Iterator[Awaitable[object]] = iter(calls)

    async def call() -> None:
        for one in pending:
            await one

    await asyncio.gather(*(call() for _ in range(_CALLERS)))
