"""The kinds of jobs that the measured processes run. Begins and ends of busy iterations go to the file BENCH_JOBS."""

import asyncio
import os
import time
from datetime import timedelta
from pathlib import Path

from jobs import Iteration, Job, Schedule

PERIOD = float(os.environ.get("BENCH_PERIOD", "3600"))
TAKES = float(os.environ.get("BENCH_TAKES", "0"))


class Idle(Job):
    """One iteration, and then nothing for a day."""

    name = "idle"
    schedule = Schedule(timedelta(days=1))

    async def run(self, iteration: Iteration) -> None:
        await iteration.step("search", _found)


class Busy(Job):
    """An iteration with a step, which takes a while."""

    name = "busy"
    schedule = Schedule(timedelta(seconds=PERIOD))

    async def run(self, iteration: Iteration) -> None:
        _note("begin", iteration)
        await iteration.step("search", _found)
        await asyncio.sleep(TAKES)
        _note("end", iteration)


async def _found() -> list[int]:
    return [1, 2, 3]


def _note(what: str, iteration: Iteration) -> None:
    """Appends a line in one write, so that lines of two processes do not mix."""
    with Path(os.environ["BENCH_JOBS"]).open("ab", buffering=0) as file:
        file.write(f"{what} {os.getpid()} {iteration.user} {time.time() * 1000:.1f}\n".encode())
