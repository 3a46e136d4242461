"""At its start a process of jobs logs how many jobs go on (U-09)."""

import asyncio
import logging
from datetime import timedelta

import pytest

from core.jobs import Actor, JobId, JobState, Schedule
from jobs import Iteration
from tests.jobs.conftest import HOUR, Playground
from tests.jobs.fake_service import FakeService
from tests.support.waiting import until


def line(interrupted: int, due: int, taken: int) -> str:
    return f"jobs that were interrupted and go on: {interrupted}; due: {due}; with another process: {taken}"


def users(first: int, count: int) -> list[JobId]:
    return [JobId("university", "hunt", str(user)) for user in range(first, first + count)]


async def test_how_many_interrupted_jobs_go_on_is_logged(
    playground: Playground, caplog: pytest.LogCaptureFixture
) -> None:
    """More than a page of them; what is paused, stopped, not due yet or of another kind is not counted."""
    caplog.set_level(logging.INFO, "jobs.worker")
    service, interrupted = FakeService(), users(0, 120)
    service.gate.clear()
    playground.run = service.hunt
    playground.start_worker(concurrency=120)
    for job_id in interrupted:
        await playground.jobs.start(job_id)
    await until(lambda: service.waiting == 120, within=60)
    stopping = asyncio.create_task(playground.stop())
    await asyncio.sleep(0)
    service.gate.set()
    await stopping
    for job_id in users(200, 5):
        await playground.jobs.start(job_id)
    await playground.jobs.pause(users(200, 1)[0], Actor.USER)
    await playground.jobs.stop(users(201, 1)[0], Actor.USER)
    await playground.jobs.kinds.publish({"digest": Schedule(timedelta(hours=1))})
    await playground.jobs.start(JobId("university", "digest", "1"))
    caplog.clear()
    playground.start_worker(concurrency=120)
    await until(lambda: line(120, 3, 0) in caplog.text, within=60)

    async def all_went_on() -> bool:
        found = [await playground.jobs.find(job_id) for job_id in interrupted]
        return all(job.record.iteration == 1 for job in found)

    await until(all_went_on, within=60)
    await playground.jobs.stop(JobId("university", "digest", "1"), Actor.ADMIN)


async def test_jobs_of_another_process_are_counted_apart(
    playground: Playground, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jobs.worker")
    service = FakeService()
    service.gate.clear()
    playground.run = service.hunt
    playground.start_worker()
    (job_id,) = users(1, 1)
    await playground.jobs.start(job_id)
    await until(lambda: service.waiting == 1)
    playground.start_worker()
    await until(lambda: line(0, 0, 1) in caplog.text)
    service.gate.set()
    await playground.iterations(1, job_id)


async def test_what_a_person_stopped_stays_stopped_and_what_a_deploy_interrupted_goes_on(
    playground: Playground,
) -> None:
    """Neither a shutdown nor a kill of the process changes the state of a job."""
    begun: list[str] = []

    async def run(iteration: Iteration) -> None:
        begun.append(iteration.user)

    playground.run = run
    paused, stopped, barred, failed, running = users(0, 5)
    for job_id in (paused, stopped, barred, failed, running):
        await playground.jobs.start(job_id)
    await playground.jobs.pause(paused, Actor.USER)
    await playground.jobs.stop(stopped, Actor.USER)
    await playground.jobs.pause(barred, Actor.ADMIN)
    await playground.jobs.fail(failed, "broken")
    for number, end in enumerate((playground.stop, playground.kill, playground.stop), 1):
        playground.start_worker(lease=timedelta(seconds=1))
        await playground.iterations(number, running)
        await end()
        playground.stack.advance_clock(HOUR)
    assert set(begun) == {running.user}
    states = [(await playground.jobs.find(job_id)).record.state for job_id in (paused, stopped, barred, failed)]
    assert states == [JobState.PAUSED, JobState.STOPPED, JobState.PAUSED, JobState.FAILED]
