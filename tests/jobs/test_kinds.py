"""A job waits for a process that has the code of its kind. The tasks of an earlier version are not lost."""

import json
from datetime import timedelta
from typing import Any

import pytest

from core.jobs import Actor, JobId, JobState, Schedule, StoredJob
from core.jobs.kinds import FRESH
from core.model.clock import from_ms
from core.queue import NewTask, QueueClient
from core.redis.keys import KEYS
from jobs import Iteration, Job, JobWorker, Registry
from jobs.old_tube import OLD_TUBE
from jobs.watchdog import LATE, Watchdog
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


@pytest.mark.row("U-14")
async def test_a_job_waits_for_a_process_that_has_its_kind_and_no_other_touches_it(playground: Playground) -> None:
    await start_other_version(playground)
    job = await playground.jobs.start(ANNA)
    await playground.jobs.start(BERT)
    await playground.iterations(1, BERT)
    waiting = await playground.stack.queue.peek(job.record.task)
    assert (waiting.tube, waiting.attempts) == ("jobs.hunt", None)
    playground.run = hunt
    playground.start_worker()
    await playground.iterations(1)
    assert await log_of(playground) == ["started by user", "hunted"]


async def test_a_job_whose_class_a_deploy_has_removed_stays_running_and_says_what_it_waits_for(
    playground: Playground,
) -> None:
    await playground.jobs.start(ANNA)
    playground.stack.advance_clock(FRESH + LATE)
    watchdog = watchdog_of(playground)
    assert (await watchdog.look(), await watchdog.look()) == (1, 0)
    waiting = await playground.jobs.find(ANNA)
    assert (waiting.record.state, waiting.record.reason) == (JobState.RUNNING, WAITS)
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


async def test_the_watchdog_looks_at_more_overdue_jobs_than_a_page_one_page_after_the_other(
    playground: Playground,
) -> None:
    ids = [JobId("university", "hunt", str(user)) for user in range(130)]
    for job_id in ids:
        await playground.jobs.start(job_id)
    playground.stack.advance_clock(FRESH + LATE)
    watchdog = watchdog_of(playground)
    assert [await watchdog.look() for _ in range(3)] == [100, 30, 0]
    for job_id in ids:
        await playground.jobs.stop(job_id, Actor.USER)


async def test_a_task_of_an_earlier_version_is_moved_to_the_tube_of_its_kind_and_runs_once(
    playground: Playground,
) -> None:
    job = await in_old_tube(playground, await playground.jobs.start(ANNA))
    await start_other_version(playground)
    assert (await moved(playground, job)).record.due == job.record.due
    playground.run = hunt
    playground.start_worker()
    await playground.iterations(1)
    assert await log_of(playground) == ["started by user", "hunted"]


async def test_a_task_that_an_earlier_version_puts_while_this_one_runs_is_moved_too(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.old_tube.EVERY", timedelta(seconds=0.05))
    await start_other_version(playground)
    for user in ("3", "4"):
        job = await playground.jobs.start(JobId("university", "hunt", user))
        old = await in_old_tube(playground, job, later=HOUR)
        playground.stack.advance_clock(HOUR)
        await moved(playground, old)


async def test_a_task_of_an_earlier_version_that_is_not_the_job_s_any_more_does_nothing(playground: Playground) -> None:
    old = await in_old_tube(playground, await playground.jobs.start(ANNA))
    await playground.jobs.stop(ANNA, Actor.USER)
    stopped = await playground.jobs.find(ANNA)
    await start_other_version(playground)

    async def has_ended() -> bool:
        return not await playground.stack.redis.exists(KEYS["task"].at(0, old.record.task.partition(".")[2]))

    await until(has_ended)
    assert await playground.jobs.find(ANNA) == stopped


async def moved(playground: Playground, old: StoredJob) -> StoredJob:
    """Wait until the job has another task; returns it."""

    async def has_moved() -> bool:
        return (await playground.jobs.find(old.id)).record.task != old.record.task

    await until(has_moved)
    job = await playground.jobs.find(old.id)
    assert (await playground.stack.queue.peek(job.record.task)).tube == "jobs.hunt"
    return job


async def in_old_tube(playground: Playground, job: StoredJob, later: timedelta = timedelta(0)) -> StoredJob:
    """The job as an earlier version has left it: its task, and what the task carries, in the tube of all kinds. A task
    that is due `later` is not moved before the job has its id.
    """
    queue, record = playground.stack.queue, job.record
    await queue.cancel(record.task)
    carried: dict[str, Any] = {"tenant": job.id.tenant, "kind": job.id.kind, "user": job.id.user}
    body = json.dumps({**carried, "generation": record.generation})
    lane, due = f"job:{job.id.tenant}/{job.id.name}", from_ms(record.due) + later
    task_id = await queue.put_task(OLD_TUBE, NewTask(body, job.id.tenant, lane, due=due, kind=job.id.kind))
    key = KEYS["job"].at(0, f"{job.id.tenant}/{job.id.name}")
    stored = await playground.stack.redis.hget(key, "record")
    document = json.loads(stored or "") | {"task": task_id}
    await playground.stack.redis.hset(key, "record", json.dumps(document))
    return await playground.jobs.find(job.id)
