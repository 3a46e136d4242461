"""Processes that are stopped, killed or frozen, and lost tasks: another process goes on, and nothing is done twice."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from core.jobs import Actor, JobId, JobState, StoredJob
from jobs import Finished, Iteration, Pause
from jobs.recovery import Watchdog
from jobs.signals import Lost
from tests.jobs.conftest import ANNA, Playground
from tests.jobs.fake_service import FakeService
from tests.support.waiting import until


async def test_a_shutdown_finishes_the_unit_in_hand_and_another_process_does_the_rest(playground: Playground) -> None:
    service = await playground.begin_hunt()
    stopping = asyncio.create_task(playground.stop())
    await asyncio.sleep(0)
    service.gate.set()
    await stopping
    assert service.applied == [1]
    job = await playground.jobs.find(ANNA)
    assert (job.record.state, job.record.iteration) == (JobState.RUNNING, 0)
    playground.start_worker()
    await playground.iterations(1)
    assert service.applied == [1, 2, 3]
    assert service.searches == 1


async def test_after_a_kill_another_process_goes_on_when_the_lease_ends(playground: Playground) -> None:
    service = await playground.begin_hunt(lease=timedelta(seconds=1))
    await playground.kill()
    service.gate.set()
    playground.start_worker(lease=timedelta(seconds=1))
    await playground.iterations(1)
    assert service.applied == [1, 2, 3]
    assert service.searches == 1


async def test_an_attempt_that_takes_its_lease_for_lost_gives_its_task_back(playground: Playground) -> None:
    """As after an outage of the server that was longer than the lease, when no other attempt has the task yet."""
    begun: list[int] = []

    async def run(iteration: Iteration) -> None:
        begun.append(iteration.number)
        if len(begun) == 1:
            raise Lost

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert begun == [0, 0]


@pytest.mark.parametrize("ending", [Pause(Actor.SIGN_IN, "sign in again"), Finished(), ValueError("broken")])
async def test_a_process_that_was_frozen_changes_no_state(playground: Playground, ending: Exception) -> None:
    """While it was frozen another attempt has begun the iteration, and that one goes on."""

    async def run(iteration: Iteration) -> None:
        job = await playground.jobs.find(ANNA)
        again = replace(job.record, last_run=job.record.last_run + 1)
        assert await playground.jobs.storage.save(StoredJob(ANNA, again, job.version), holder="another attempt")
        raised.set()
        raise ending

    raised = asyncio.Event()
    playground.run, playground.most_failures = run, 1
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await asyncio.wait_for(raised.wait(), 20)
    await playground.stop()
    assert (await playground.jobs.find(ANNA)).record.state is JobState.RUNNING


def is_lost(iteration: Iteration) -> bool:
    try:
        iteration.check_lease()
    except Lost:
        return True
    return False


async def test_the_lease_is_not_relied_on_after_an_outage_of_the_server(playground: Playground) -> None:
    held: list[bool] = []

    async def run(iteration: Iteration) -> None:
        if held:
            return
        iteration.check_lease()
        playground.stack.server.pause()
        await until(lambda: is_lost(iteration))
        playground.stack.server.resume()
        held.append(False)
        iteration.check_lease()
        held.append(True)

    playground.run = run
    playground.start_worker(lease=timedelta(seconds=1))
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert held == [False]


async def test_a_process_that_was_frozen_writes_nothing(playground: Playground) -> None:
    written: list[Any] = []

    async def run(iteration: Iteration) -> None:
        first = not written
        written.append(iteration)
        if not first:
            await iteration.step("mine", _value, "second")

    playground.run = run
    playground.start_worker()
    job = await playground.jobs.start(ANNA)
    await playground.iterations(1)
    storage = playground.jobs.storage
    assert await storage.write_step(ANNA, "an older attempt", "mine", '"first"') == "lost"
    assert await storage.end_iteration(job, "an older attempt", "") == "changed"


@pytest.mark.parametrize(("answer", "applied", "status"), [(True, 0, "done"), (False, 1, "done"), (None, 0, "unknown")])
async def test_after_a_crash_in_an_effect_the_service_is_asked(
    playground: Playground, answer: bool | None, applied: int, status: str
) -> None:
    calls, asked = 0, 0
    crash = asyncio.Event()

    async def apply() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            crash.set()
            await asyncio.Event().wait()
        return "sent"

    async def exists() -> bool | None:
        nonlocal asked
        asked += 1
        return answer

    async def handle(item: int) -> None:
        await playground_iteration[-1].effect(f"apply {item}", apply, exists=exists)

    playground_iteration: list[Iteration] = []

    async def run(iteration: Iteration) -> None:
        playground_iteration.append(iteration)
        await iteration.each([1], handle, key=lambda item: item)

    playground.run = run
    playground.start_worker(lease=timedelta(seconds=1))
    await playground.jobs.start(ANNA)
    await asyncio.wait_for(crash.wait(), 20)
    await playground.kill()
    playground.start_worker(lease=timedelta(seconds=1))
    await playground.iterations(1)
    assert (asked, calls - 1) == (1, applied)
    (unit,) = await playground.jobs.storage.units(ANNA, ["unit:1"])
    assert unit is not None
    assert f'"status":"{status}"' in unit


async def test_the_watchdog_gives_a_job_without_a_task_a_new_one_and_leaves_others_alone(
    playground: Playground,
) -> None:
    service = FakeService()
    playground.run = service.hunt
    job = await playground.jobs.start(ANNA)
    other = await playground.jobs.start(JobId("university", "hunt", "2"))
    await playground.stack.queue.cancel(job.record.task)
    playground.stack.advance_clock(timedelta(minutes=1))
    await playground.jobs.kinds.publish(playground.registry.schedules)
    watchdog = Watchdog(playground.stack.store, playground.jobs, {})
    assert await watchdog.recover() == 1
    assert await watchdog.recover() == 0
    assert (await playground.jobs.find(other.id)).version == other.version
    playground.start_worker()
    await playground.iterations(1)


async def _value(value: str) -> str:
    return value
