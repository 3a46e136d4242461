"""How many iterations of a kind run at once, and how many begin in a second (part of U-27)."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from core.errors import SetupError
from jobs import Iteration, Job, Registry, Schedule
from jobs.testing import JobTest
from tests.support.waiting import until


async def test_a_process_runs_so_many_iterations_of_a_kind_at_once() -> None:
    running, most, gate = set[str](), list[int](), asyncio.Event()

    class Heavy(Job):
        name = "heavy"
        schedule = Schedule()
        concurrency = 2

        async def run(self, iteration: Iteration) -> None:
            running.add(iteration.user)
            most.append(len(running))
            await gate.wait()
            running.discard(iteration.user)

    async with JobTest.open(Heavy) as test:
        for user in range(5):
            await test.jobs.start(test.id_of(f"heavy.{user}"))
        worker = asyncio.create_task(test.worker.run())
        await until(lambda: len(running) == 2)
        gate.set()
        await until(lambda: len(most) == 5)
        test.worker.stop(timedelta(seconds=5))
        await worker
    assert max(most) == 2


def test_a_kind_that_could_never_run_is_refused() -> None:
    class Never(Job):
        name = "never"
        schedule = Schedule()
        concurrency = 0

        async def run(self, iteration: Iteration) -> None: ...

    with pytest.raises(SetupError, match=r"`concurrency` of the job .*Never is a number from 1; it is 0"):
        Registry([Never])


async def test_so_many_iterations_of_a_kind_begin_in_a_second() -> None:
    begun: list[Any] = []

    class Polite(Job):
        name = "polite"
        schedule = Schedule()
        pace = 0.1

        async def run(self, iteration: Iteration) -> None:
            begun.append(iteration.now())

    async with JobTest.open(Polite) as test:
        for user in range(3):
            await test.jobs.start(test.id_of(f"polite.{user}"))
        await test.advance(timedelta(minutes=1))
    pauses = [later - earlier for earlier, later in pairwise(begun)]
    assert len(pauses) == 2
    assert min(pauses) > timedelta(seconds=9)
