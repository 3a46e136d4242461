"""bench jobs load and idle: many jobs on two processes.

`load`: how late iterations begin, and when the jobs of a process run again that was killed (kill -9). `idle`: bytes of
a job that waits for its next iteration, and the CPU of all processes meanwhile.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from bench.harness.environment import ChildProcess, Environment, environment
from bench.harness.measurements import (
    commands_within,
    cpu_seconds,
    latency_columns,
    server_size,
    transition_count,
    wait_until,
)
from bench.harness.report import Rows, log_progress, report_target
from core.jobs import JobId, JobRecord, Jobs, JobState, StoredJob
from core.jobs.storage import tube_of
from core.model.clock import to_ms
from core.redis.keys import KEYS
from core.redis.store import Store


@dataclass(frozen=True, slots=True)
class JobSizes:
    """`jobs`: how many. `seconds`: how long the CPU of idle jobs and the lateness of busy ones are measured. `rate`:
    iterations per second of all busy jobs together; `takes`: seconds of each. `lease`: seconds until the jobs of a dead
    process are free. `updates_per_s`: what people write to the bot.
    """

    jobs: int = 10_000
    seconds: float = 30.0
    rate: float = 100.0
    takes: float = 0.5
    lease: int = 10
    updates_per_s: float = 25.0


FULL = JobSizes()
SHORT = JobSizes(jobs=60, seconds=2.0, rate=20.0, lease=1, updates_per_s=10.0)


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
async def running_jobs(sizes: JobSizes) -> AsyncIterator[Bench]:
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


LONGER_THAN_LEASE = 2.0
FIRST_IN_MS = 1000
_TIMEOUT = 120.0


async def measure_load(sizes: JobSizes, rows: Rows) -> None:
    async with running_jobs(sizes) as bench:
        first, since = await start_busy(bench, sizes)
        await asyncio.sleep(sizes.seconds)
        show_lateness(bench.notes(), since, sizes, first, rows)
        await show_takeover(bench, sizes, rows)


async def start_busy(bench: Bench, sizes: JobSizes) -> tuple[int, float]:
    """Store busy jobs; return when the first one was due and when a period begins with all of them (ms)."""
    period, began = sizes.jobs / sizes.rate, time.monotonic()
    first = to_ms(bench.jobs.now()) + FIRST_IN_MS
    await store_busy(bench.jobs, sizes.jobs, first, period)
    log_progress(f"{sizes.jobs:,} jobs stored in {time.monotonic() - began:.1f} s")
    return first, await next_round(first, period)


async def next_round(first: int, period: float) -> float:
    """Waits for the begin of a period, when all jobs are stored; returns it (ms)."""
    passed = (time.time() * 1000 - first) / (1000 * period)
    begin = first + 1000 * period * max(0, int(passed) + 1)
    await asyncio.sleep(max(0.0, begin / 1000 - time.time()))
    return begin


def show_lateness(notes: Sequence[Note], since: float, sizes: JobSizes, first: int, rows: Rows) -> None:
    period = sizes.jobs / sizes.rate
    late = [
        (note.at - due_of(int(note.user), sizes.jobs, first, period)) % (1000 * period)
        for note in notes
        if note.what == "begin" and note.at >= since
    ]
    rows.show({"part": "load", "n": sizes.jobs, "iterations": len(late), **latency_columns("late", late)})
    log_progress(f"{len(late) / sizes.seconds:.0f} iterations/s")


async def show_takeover(bench: Bench, sizes: JobSizes, rows: Rows) -> None:
    killed = await kill(bench, await busy_process(bench))
    seconds = await seconds_until_resumed(bench, killed)
    rows.show(
        {"part": "load", "n": sizes.jobs, "held": len(killed.held), "lease_s": sizes.lease, "run_again_s": seconds}
    )
    most = sizes.lease + LONGER_THAN_LEASE
    report_target("after kill -9 all its jobs run again, s", seconds, f"≤ {most:g}", seconds <= most)


class ProcessKilled(NamedTuple):
    """The jobs (users) whose iteration was interrupted, and when (Unix ms)."""

    held: set[str]
    at: float


async def kill(bench: Bench, pid: int) -> ProcessKilled:
    victim = next(process for process in bench.processes if process.pid == pid)
    await victim.kill()
    bench.processes.remove(victim)
    return ProcessKilled(held_by(bench.notes(), pid), time.time() * 1000)


async def seconds_until_resumed(bench: Bench, killed: ProcessKilled) -> float:
    """Wait until each interrupted job has begun another iteration; return the seconds since the kill."""
    begun: dict[str, float] = {}

    async def all_run() -> bool:
        begun.update(begun_since(bench.notes(), killed.at))
        return killed.held <= begun.keys()

    await wait_until(all_run, _TIMEOUT, f"another begin of {len(killed.held)} jobs")
    return round((max(begun[user] for user in killed.held) - killed.at) / 1000, 2)


async def busy_process(bench: Bench) -> int:
    """Waits until a process is in the middle of iterations; returns its id."""
    found: list[int] = []

    async def is_busy() -> bool:
        notes = bench.notes()
        found[:] = [process.pid for process in bench.processes if len(held_by(notes, process.pid)) > 1]
        return bool(found)

    await wait_until(is_busy, _TIMEOUT, "an iteration")
    return found[0]


def held_by(notes: Sequence[Note], process: int) -> set[str]:
    """Return the users whose iteration has begun in this process and not ended."""
    held: set[str] = set()
    for note in notes:
        if note.process == process:
            (held.add if note.what == "begin" else held.discard)(note.user)
    return held


def begun_since(notes: Sequence[Note], moment: float) -> dict[str, float]:
    """Return user → the first begin of an iteration after this moment (ms)."""
    begun: dict[str, float] = {}
    for note in notes:
        if note.what == "begin" and note.at > moment:
            begun.setdefault(note.user, note.at)
    return begun


MOST_BYTES, MOST_CPU = 1000, 1.0
_WARM_UP, _SETTLE, _IDLE_TIMEOUT = 20, 3.0, 1200.0
_KINDS = ("job", "job_log")


async def measure_idle(sizes: JobSizes, rows: Rows) -> None:
    async with running_jobs(sizes) as bench:
        await run_once(bench, range(_WARM_UP))
        await show_cpu(bench, 0, sizes, rows)
        before = (await server_size(bench.env.redis)).bytes
        began = time.monotonic()
        await run_once(bench, range(_WARM_UP, _WARM_UP + sizes.jobs))
        log_progress(f"first iterations of {sizes.jobs:,} jobs: {sizes.jobs / (time.monotonic() - began):,.0f}/s")
        await asyncio.sleep(min(_SETTLE, sizes.seconds))
        each = ((await server_size(bench.env.redis)).bytes - before) / sizes.jobs
        rows.show({"part": "idle", "n": sizes.jobs, "bytes": round(each), **(await parts_of(bench))})
        report_target("bytes of an idle job", each, f"≤ {MOST_BYTES}", each <= MOST_BYTES)
        await show_cpu(bench, sizes.jobs, sizes, rows)


async def run_once(bench: Bench, numbers: Sequence[int]) -> None:
    """Starts jobs, and waits until each has had its first iteration."""
    redis = bench.env.redis
    done = await transition_count(redis, tube_of("idle"), "done") + len(numbers)
    await start_idle(bench.jobs, numbers)

    async def are_idle() -> bool:
        return await transition_count(redis, tube_of("idle"), "done") == done

    await wait_until(are_idle, _IDLE_TIMEOUT, f"the first iteration of {len(numbers)} jobs")


async def parts_of(bench: Bench) -> dict[str, int]:
    """Return the keys of the first job, as the server counts them; the rest of its bytes is in indexes."""
    job_id = JobId(TENANT, "idle", "0")
    job = await bench.jobs.find(job_id)
    names = {f"{kind}_bytes": KEYS[kind].at(0, f"{TENANT}/{job_id.name}") for kind in _KINDS}
    names["task_bytes"] = KEYS["task"].at(0, job.record.task.partition(".")[2])
    return {name: int(await bench.env.redis.memory_usage(key) or 0) for name, key in names.items()}


async def show_cpu(bench: Bench, jobs: int, sizes: JobSizes, rows: Rows) -> None:
    """Show the CPU of the processes together and of the server, in percent of a core."""
    pids = {"processes": [one.pid for one in bench.processes], "server": [bench.env.server.pid]}
    before, began = {name: _cpu(some) for name, some in pids.items()}, time.monotonic()
    commands = await commands_within(bench.env.redis, sizes.seconds)
    took = time.monotonic() - began
    shares = {f"{name}_cpu_percent": round(100 * (_cpu(some) - before[name]) / took, 2) for name, some in pids.items()}
    rows.show({"part": "idle", "idle_jobs": jobs, **shares, "commands_per_s": round(commands / took, 2)})
    share = shares["processes_cpu_percent"]
    report_target(f"CPU of the processes with {jobs:,} idle jobs, %", share, f"< {MOST_CPU:g}", share < MOST_CPU)


def _cpu(pids: Sequence[int]) -> float:
    return sum(map(cpu_seconds, pids))
