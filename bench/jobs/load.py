"""bench jobs load: how late iterations begin, and when the jobs of a process run again that was killed (kill -9)."""

import asyncio
import os
import signal
import time
from collections.abc import Sequence

from bench.harness.measurements import latency_columns, wait_until
from bench.harness.report import Rows, log_progress, report_target
from bench.jobs.samples import Bench, Note, due_of, running_jobs, store_busy
from bench.jobs.sizes import Sizes
from core.model.clock import to_ms

LONGER_THAN_LEASE = 2.0
FIRST_IN_MS = 1000
_TIMEOUT = 120.0


async def measure(sizes: Sizes, rows: Rows) -> None:
    period = sizes.jobs / sizes.rate
    async with running_jobs(sizes) as bench:
        began = time.monotonic()
        first = to_ms(bench.jobs.now()) + FIRST_IN_MS
        await store_busy(bench.jobs, sizes.jobs, first, period)
        log_progress(f"{sizes.jobs:,} jobs stored in {time.monotonic() - began:.1f} s")
        since = await next_round(first, period)
        await asyncio.sleep(sizes.seconds)
        show_lateness(bench.notes(), since, sizes, first, rows)
        await show_takeover(bench, sizes, rows)


async def next_round(first: int, period: float) -> float:
    """Waits for the begin of a period, when all jobs are stored; returns it (ms)."""
    passed = (time.time() * 1000 - first) / (1000 * period)
    begin = first + 1000 * period * max(0, int(passed) + 1)
    await asyncio.sleep(max(0.0, begin / 1000 - time.time()))
    return begin


def show_lateness(notes: Sequence[Note], since: float, sizes: Sizes, first: int, rows: Rows) -> None:
    period = sizes.jobs / sizes.rate
    late = [
        (note.at - due_of(int(note.user), sizes.jobs, first, period)) % (1000 * period)
        for note in notes
        if note.what == "begin" and note.at >= since
    ]
    rows.show({"part": "load", "n": sizes.jobs, "iterations": len(late), **latency_columns("late", late)})
    log_progress(f"{len(late) / sizes.seconds:.0f} iterations/s")


async def show_takeover(bench: Bench, sizes: Sizes, rows: Rows) -> None:
    victim = await busy_process(bench)
    os.kill(victim, signal.SIGKILL)
    killed = time.time() * 1000
    held = held_by(bench.notes(), victim)

    async def run_again() -> bool:
        return held <= begun_since(bench.notes(), killed).keys()

    await wait_until(run_again, _TIMEOUT, f"another begin of {len(held)} jobs")
    again = begun_since(bench.notes(), killed)
    seconds = (max(again[user] for user in held) - killed) / 1000
    rows.show(
        {"part": "load", "n": sizes.jobs, "held": len(held), "lease_s": sizes.lease, "run_again_s": round(seconds, 2)}
    )
    most = sizes.lease + LONGER_THAN_LEASE
    report_target("after kill -9 all its jobs run again, s", seconds, f"≤ {most:g}", seconds <= most)


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
