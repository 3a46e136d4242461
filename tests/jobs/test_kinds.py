"""A job waits for a process that has the code of its kind."""

import asyncio
from datetime import timedelta

import pytest

from core.errors import NotFound
from core.jobs import Actor, JobId, JobState, Schedule
from core.jobs.kinds import FRESH
from core.queue import QueueClient
from jobs import Iteration, Job, JobWorker, Registry
from jobs.recovery import LATE, Watchdog
from tests.jobs.conftest import ANNA, HOUR, Playground
from tests.support.waiting import until

BERT = JobId("university", "sleep", "2")
WAITS = "waits for a process that runs jobs of the kind 'hunt'"


class Sleep(Job):
    """A kind that another version has."""

    name = "sleep"
    schedule = Schedule(HOUR)

    async def run(self, iteration: Iteration) -> None:
        await iteration.log("slept")


async def start_other_version(playground: Playground) -> None:
    """A process that has the kind `sleep` and not `hunt`."""
    store = playground.stack.store
    await playground.jobs.kinds.publish({"sleep": Sleep.schedule})
    playground.run_worker(JobWorker(store, QueueClient(store), Registry([Sleep])))


async def hunt(iteration: Iteration) -> None:
    await iteration.log("hunted")


def watchdog_of(playground: Playground) -> Watchdog:
    return Watchdog(playground.stack.store, playground.jobs, {})


async def log_of(playground: Playground, job_id: JobId = ANNA) -> list[str]:
    return [line.text for line in await playground.jobs.log.last(job_id)]


async def test_a_job_waits_for_a_process_that_has_its_kind_and_no_other_touches_it(playground: Playground) -> None:
    await start_other_version(playground)
    job = await playground.jobs.start(ANNA)
    await playground.jobs.start(BERT)
    await playground.iterations(1, BERT)
    waiting = await playground.stack.queue.inspector.peek(job.record.task)
    assert (waiting.tube, waiting.attempts) == ("jobs.hunt", None)
    playground.run = hunt
    playground.start_worker()
    await playground.iterations(1)
    assert await log_of(playground) == ["started by user", "hunted"]


async def test_a_job_whose_class_a_deploy_has_removed_stays_running_and_says_what_it_waits_for(
    playground: Playground,
) -> None:
    started = await playground.jobs.start(ANNA)
    playground.stack.advance_clock(FRESH + LATE)
    watchdog = watchdog_of(playground)
    assert (await watchdog.recover(), await watchdog.recover()) == (1, 0)
    waiting = await playground.jobs.find(ANNA)
    assert (waiting.record.state, waiting.record.reason) == (JobState.RUNNING, WAITS)
    assert waiting.record.task == started.record.task
    playground.run = hunt
    playground.start_worker()
    await playground.iterations(1)
    assert (await playground.jobs.find(ANNA)).record.reason == ""
    assert await log_of(playground) == ["started by user", WAITS, "hunted"]


async def test_a_start_of_a_job_whose_class_is_gone_is_kept_and_says_what_it_waits_for(playground: Playground) -> None:
    playground.stack.advance_clock(FRESH)
    started = await playground.jobs.start(ANNA)
    assert (started.record.state, started.record.reason) == (JobState.RUNNING, WAITS)
    stopped = await playground.jobs.stop(ANNA, Actor.USER)
    assert (stopped.record.state, stopped.record.reason) == (JobState.STOPPED, "")


async def test_a_job_that_a_process_has_in_hand_is_not_said_to_wait_for_one(playground: Playground) -> None:
    await playground.jobs.start(ANNA)
    playground.stack.advance_clock(FRESH + LATE)
    (task,) = await playground.stack.take("jobs.hunt")
    assert await watchdog_of(playground).recover() == 0
    assert (await playground.jobs.find(ANNA)).record.reason == ""
    await playground.stack.queue.release(task)


async def test_a_job_that_a_limit_paused_keeps_that_reason_while_no_process_runs_its_kind(
    playground: Playground,
) -> None:
    await playground.jobs.start(ANNA)
    await playground.jobs.pause(ANNA, Actor.LIMIT, "limit", playground.jobs.now() + FRESH)
    playground.stack.advance_clock(FRESH + 2 * LATE)
    assert await watchdog_of(playground).recover() == 0
    assert (await playground.jobs.find(ANNA)).record.reason == "limit"


async def test_the_watchdog_looks_again_and_again_and_publishes_the_kinds_of_its_process(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.recovery.EVERY", timedelta(milliseconds=20))
    watching = asyncio.create_task(Watchdog(playground.stack.store, playground.jobs, {"sleep": Sleep.schedule}).run())
    for job_id in (ANNA, BERT):
        await until(lambda: is_known(playground, BERT.kind))
        await playground.jobs.start(job_id)
    playground.stack.advance_clock(FRESH + LATE)
    await until(lambda: waits(playground))
    assert (await playground.jobs.find(BERT)).record.reason == ""
    watching.cancel()


async def is_known(playground: Playground, kind: str) -> bool:
    return kind in await playground.jobs.kinds.names()


async def waits(playground: Playground) -> bool:
    return (await playground.jobs.find(ANNA)).record.reason == WAITS


async def test_the_watchdog_looks_at_more_overdue_jobs_than_a_page_one_page_after_the_other(
    playground: Playground,
) -> None:
    ids = [JobId("university", "hunt", str(user)) for user in range(130)]
    for job_id in ids:
        await playground.jobs.start(job_id)
    playground.stack.advance_clock(FRESH + LATE)
    watchdog = watchdog_of(playground)
    assert [await watchdog.recover() for _ in range(3)] == [100, 30, 0]
    for job_id in ids:
        await playground.jobs.stop(job_id, Actor.USER)


@pytest.mark.parametrize("name", ["hunt", "hunt.", ".42", "", "Hunt.42", "nonsense"])
def test_the_error_for_what_is_no_name_of_a_job_says_how_jobs_are_named(name: str) -> None:
    with pytest.raises(NotFound, match=r"A job is named KIND.USER or KIND~KEY.USER, for example hunt\.42, and not "):
        JobId.parse("default", name)
    assert JobId.parse("default", "hunt.a.b").user == "a.b"
