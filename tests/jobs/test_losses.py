"""Attempts whose process dies, hangs or blocks are counted; deploys are not, and no job pays for another."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from core.jobs import Actor, JobId, JobState
from core.queue import QueueClient, Worker
from jobs import Iteration
from jobs.recovery import MOST_LOSSES
from tests.jobs.conftest import ANNA, Playground
from tests.support.waiting import until

QUICK = timedelta(seconds=1)
LONG = timedelta(minutes=6)
"""Longer than every pause after a loss."""

BORIS = JobId("university", "hunt", "2")


class Hanging:
    """Iterations that hang. `running`: those of this moment."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.running: set[str] = set()
        self.most = 0

    async def run(self, iteration: Iteration) -> None:
        self.begun.append(iteration.user)
        self.running.add(iteration.user)
        self.most = max(self.most, len(self.running))
        try:
            await asyncio.Event().wait()
        finally:
            self.running.discard(iteration.user)


async def lose(playground: Playground, hanging: Hanging, attempts: int) -> None:
    """Start a process, and kill it when so many attempts have begun."""
    before = len(hanging.begun)
    playground.start_worker(lease=QUICK)
    await until(lambda: len(hanging.begun) >= before + attempts)
    await playground.kill()
    playground.stack.advance_clock(LONG)


async def test_a_job_whose_process_dies_each_time_has_failed_after_five_times(playground: Playground) -> None:
    hanging = Hanging()
    playground.run = hanging.run
    await playground.jobs.start(ANNA)
    for loss in range(1, MOST_LOSSES + 1):
        await lose(playground, hanging, 1)
        if loss > 1:
            await count_the_loss(playground, loss)
    failed = await playground.in_state(JobState.FAILED)
    assert failed.record.reason == "its process died or hung 5 times in a row"
    assert len(hanging.begun) == MOST_LOSSES
    lines = [line.text for line in await playground.jobs.log.last(ANNA)]
    assert [line for line in lines if "loss" in line] == [
        f"loss {number} of 5: the process of this iteration died, hung or was frozen" for number in range(1, 6)
    ]
    again = await playground.jobs.start(ANNA)
    assert (again.record.state, (await playground.jobs.find(ANNA)).losses) == (JobState.RUNNING, 0)


async def count_the_loss(playground: Playground, losses: int) -> None:
    """After the second loss in a row the next attempt does not begin at once."""
    playground.start_worker(lease=QUICK)

    async def is_counted() -> bool:
        job = await playground.jobs.find(ANNA)
        return job.losses == losses or job.record.state is JobState.FAILED

    await until(is_counted)
    await playground.stop()
    playground.stack.advance_clock(LONG)


async def test_a_job_that_stores_results_between_losses_goes_on(playground: Playground) -> None:
    attempts: list[int] = []

    async def value(of: int) -> int:
        return of

    async def run(iteration: Iteration) -> None:
        number = len(attempts)
        await iteration.step(f"part {number}", value, number)
        attempts.append(number)
        await asyncio.Event().wait()

    playground.run = run
    await playground.jobs.start(ANNA)
    for number in range(MOST_LOSSES + 1):
        playground.start_worker(lease=QUICK)
        await until(lambda number=number: len(attempts) > number)  # type: ignore[misc]
        await playground.kill()
        playground.stack.advance_clock(LONG)
    assert (await playground.jobs.find(ANNA)).record.state is JobState.RUNNING


def storing_before(hanging: Hanging, stores: asyncio.Event) -> Callable[[Iteration], Awaitable[None]]:
    """Return an iteration that stores a step before it hangs, once `stores` is set."""

    async def value() -> int:
        return 1

    async def run(iteration: Iteration) -> None:
        if stores.is_set():
            await iteration.step("part", value)
        await hanging.run(iteration)

    return run


async def test_jobs_that_were_lost_twice_run_one_after_the_other_until_they_store_something(
    playground: Playground,
) -> None:
    """So a job that kills its process takes down itself, and not the same others each time."""
    hanging = Hanging()
    playground.run = hanging.run
    await playground.jobs.start(ANNA)
    await playground.jobs.start(BORIS)
    await lose(playground, hanging, 2)
    await lose(playground, hanging, 2)
    assert hanging.most == 2
    hanging.most = 0
    stores = asyncio.Event()
    playground.run = storing_before(hanging, stores)
    playground.start_worker(lease=QUICK)

    async def are_counted() -> bool:
        return [(await playground.jobs.find(job)).losses for job in (ANNA, BORIS)] == [2, 2]

    await until(are_counted)
    playground.stack.advance_clock(LONG)
    await until(lambda: len(hanging.begun) == 5)
    before = await _retried(playground)

    async def is_put_off_again() -> bool:
        return await _retried(playground) >= before + 2

    await until(is_put_off_again)
    assert hanging.most == 1
    await playground.kill()
    stores.set()
    playground.stack.advance_clock(LONG)
    playground.start_worker(lease=QUICK)
    await until(lambda: hanging.most == 2, within=60)


async def test_deploys_pauses_and_failures_are_no_losses(playground: Playground) -> None:
    hanging = Hanging()
    playground.run = hanging.run
    await playground.jobs.start(ANNA)
    for number in range(3):
        playground.start_worker(lease=QUICK)
        await until(lambda number=number: len(hanging.begun) > number)  # type: ignore[misc]
        await playground.stop(grace=timedelta(seconds=0.1))
        assert (await playground.jobs.find(ANNA)).holder == ""

    async def fail(iteration: Iteration) -> None:
        raise ConnectionError("no answer")

    async def is_free() -> bool:
        return not (await playground.jobs.find(ANNA)).holder

    playground.run = fail
    playground.start_worker()
    await until(lambda: _logs(playground, "failure 1 of 5"))
    await until(is_free)
    await playground.jobs.pause(ANNA, Actor.USER)
    await playground.jobs.resume(ANNA, Actor.USER)
    await until(lambda: _logs(playground, "failure 2 of 5"))
    assert (await playground.jobs.find(ANNA)).losses == 0


async def _retried(playground: Playground) -> int:
    stats = await playground.stack.queue.inspector.stats()
    return stats.tubes["jobs.hunt"].retried


async def _logs(playground: Playground, start: str) -> bool:
    return any(line.text.startswith(start) for line in await playground.jobs.log.last(ANNA))


async def test_a_job_that_blocks_the_event_loop_for_a_lease_has_lost_it_also_without_another_process(
    playground: Playground,
) -> None:
    attempts: list[int] = []

    async def run(iteration: Iteration) -> None:
        attempts.append(len(attempts))
        if len(attempts) == 1:
            time.sleep(3)  # noqa: ASYNC251 - that is the mistake
            await asyncio.Event().wait()

    playground.run = run
    playground.start_worker(lease=QUICK)
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert attempts == [0, 1]
    assert await _logs(playground, "loss 1 of 5: ")


class ShortHours(QueueClient):
    """A queue whose own limit of an attempt is one second instead of an hour."""

    def worker(self, *given: Any, max_runtime: timedelta = timedelta(seconds=1), **options: Any) -> Worker:
        return super().worker(*given, max_runtime=max_runtime, **options)


async def test_an_iteration_may_take_longer_than_the_queue_allows_other_tasks(playground: Playground) -> None:
    attempts: list[int] = []

    async def run(iteration: Iteration) -> None:
        attempts.append(iteration.number)
        await asyncio.sleep(3)
        iteration.check_lease()

    playground.run = run
    client = ShortHours(playground.stack.store)
    playground.start_worker(lease=QUICK, client=client)
    playground.start_worker(lease=QUICK, client=client)
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert attempts == [0]
