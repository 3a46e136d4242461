"""Jobs that hang, find too much, or whose code is gone: each ends in a defined state with a clear message."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from core.jobs import JobId, JobState, Schedule
from core.queue import QueueClient
from core.redis.keys import KEYS
from jobs import Iteration, Job, JobWorker, Registry, UnitFailed
from tests.jobs.conftest import ANNA, Playground

ITEMS = 100_000
REST = 50


def registry_of(run: Callable[[Iteration], Awaitable[None]], longest: timedelta) -> Registry:
    class Hunt(Job):
        name = "hunt"
        schedule = Schedule(timedelta(hours=1))
        max_runtime = longest
        most_failures = 1

        async def run(self, iteration: Iteration) -> None:
            await run(iteration)

    return Registry([Hunt])


def start_worker(playground: Playground, registry: Registry) -> None:
    store = playground.stack.store
    playground.run_worker(JobWorker(store, QueueClient(store), registry))


async def test_a_job_that_hangs_fails_after_its_longest_time(playground: Playground) -> None:
    async def hang(iteration: Iteration) -> None:
        await asyncio.Event().wait()

    start_worker(playground, registry_of(hang, timedelta(seconds=0.2)))
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert failed.record.reason == "the iteration took longer than 0:00:00.200000"


async def test_a_timeout_inside_a_job_is_not_called_its_longest_time(playground: Playground) -> None:
    async def call(iteration: Iteration) -> None:
        raise TimeoutError("the service did not answer")

    start_worker(playground, registry_of(call, timedelta(hours=1)))
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert re.fullmatch(r"TimeoutError in test_bad_jobs.py, line \d+", failed.record.reason)


async def test_of_a_hundred_thousand_items_only_those_are_handled_that_are_not_recorded(playground: Playground) -> None:
    handled: list[int] = []

    async def search() -> list[int]:
        return list(range(ITEMS))

    async def apply(item: int) -> None:
        handled.append(item)

    async def run(iteration: Iteration) -> None:
        await iteration.each(await iteration.step("search", search), apply, key=str)

    await record_units(playground, range(ITEMS - REST))
    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert handled == list(range(ITEMS - REST, ITEMS))


async def record_units(playground: Playground, items: range) -> None:
    key = KEYS["job_units"].at(0, f"{ANNA.tenant}/{ANNA.name}")
    for start in range(0, len(items), 10_000):
        some = items[start : start + 10_000]
        await playground.stack.redis.hset(key, mapping={f"unit:{item}": '{"status":"done"}' for item in some})


async def test_a_hundred_thousand_items_that_are_too_large_for_a_step_fail_with_a_message(
    playground: Playground,
) -> None:
    async def search() -> list[str]:
        return [f"a vacancy with the number {number}" for number in range(ITEMS)]

    async def run(iteration: Iteration) -> None:
        await iteration.step("search", search)

    playground.run, playground.most_failures = run, 1
    playground.start_worker()
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert "The result of search has" in failed.record.reason


class Unreadable(Exception):
    """Its text cannot be read."""

    def __str__(self) -> str:
        raise AttributeError("there is no text")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (RuntimeError("no answer\nfrom \ud800 the service"), r"RuntimeError in conftest.py, line \d+"),
        (UnitFailed("no answer\nfrom \ud800 the service"), "no answer from \\? the service"),
        (SystemExit(1), r"SystemExit in conftest.py, line \d+"),
        (KeyboardInterrupt(), r"KeyboardInterrupt in conftest.py, line \d+"),
        (GeneratorExit(), r"GeneratorExit in conftest.py, line \d+"),
        (BaseException("no answer"), r"BaseException in conftest.py, line \d+"),
        (Unreadable(), r"Unreadable in conftest.py, line \d+"),
        (asyncio.CancelledError(), "the iteration was cancelled by its own code"),
    ],
)
async def test_whatever_a_job_raises_fails_only_this_job(
    playground: Playground, fault: BaseException, reason: str
) -> None:
    async def run(iteration: Iteration) -> None:
        if iteration.user == ANNA.user:
            raise fault

    playground.run, playground.most_failures = run, 1
    playground.start_worker()
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert re.fullmatch(reason, failed.record.reason)
    other = JobId(ANNA.tenant, ANNA.kind, "2")
    await playground.jobs.start(other)
    await playground.iterations(1, other)


async def test_a_line_of_the_log_is_cut(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        await iteration.log("x" * 5_000_000)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert [len(line.text) for line in await playground.jobs.log.last(ANNA)][1:] == [1000]
