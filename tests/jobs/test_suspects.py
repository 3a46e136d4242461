"""Lost attempts are counted, and a job that was lost twice runs beside no other such job until it stores a result."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from core.jobs import JobId, JobState, StoredJob
from core.queue import Done, Retry
from jobs import Iteration
from jobs.recovery import BACKOFF, MOST_LOSSES, SUSPECT, Losses
from tests.jobs.conftest import ANNA, Playground
from tests.support.waiting import until

BORIS = JobId("university", "hunt", "2")
VERA = JobId("university", "hunt", "3")
WAIT = Retry(BACKOFF.first)


@dataclass
class FakeGuard:
    """The part of a guard that is read of a suspect."""

    job: StoredJob
    has_stored: bool = False


def lost(job: StoredJob, job_id: JobId, losses: int = SUSPECT) -> StoredJob:
    return StoredJob(job_id, job.record, job.version, losses=losses)


@pytest.fixture
async def job(playground: Playground) -> StoredJob:
    return await playground.jobs.start(ANNA)


async def test_a_suspect_waits_for_another_one_and_all_other_jobs_run(playground: Playground, job: StoredJob) -> None:
    losses = Losses(playground.jobs)
    assert await losses.delay(lost(job, ANNA)) is None
    assert await losses.delay(lost(job, BORIS)) == WAIT
    assert await losses.delay(lost(job, VERA, SUSPECT - 1)) is None
    losses.end(VERA)
    assert await losses.delay(lost(job, BORIS)) == WAIT
    losses.end(ANNA)
    assert await losses.delay(lost(job, BORIS)) is None
    assert await losses.delay(lost(job, ANNA)) == WAIT


async def test_a_suspect_that_has_stored_a_result_keeps_no_other_one_waiting(
    playground: Playground, job: StoredJob
) -> None:
    losses = Losses(playground.jobs)
    anna, vera = FakeGuard(lost(job, ANNA)), FakeGuard(lost(job, VERA, 0), has_stored=True)
    assert await losses.delay(anna.job) is None
    for guard in (anna, vera):
        losses.begin(guard)  # type: ignore[arg-type]  # a part of it
        assert await losses.delay(lost(job, BORIS)) == WAIT
    anna.has_stored = True
    assert await losses.delay(lost(job, BORIS)) is None


async def test_a_suspect_runs_alone_for_a_limited_time(
    playground: Playground, job: StoredJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.recovery.ALONE", 0.0)
    losses = Losses(playground.jobs)
    for job_id in (ANNA, BORIS):
        assert await losses.delay(lost(job, job_id)) is None


async def test_losses_in_a_row_are_counted_until_the_job_has_failed(playground: Playground, job: StoredJob) -> None:
    losses, found = Losses(playground.jobs), list[Any]()
    for number in range(MOST_LOSSES):
        begun = await playground.jobs.find(ANNA)
        assert await playground.jobs.storage.save(begun, holder=f"attempt {number}")
        found.append(await losses.delay(await playground.jobs.find(ANNA)))
    assert found[0] is None
    for number, result in enumerate(found[1:-1], 2):
        assert isinstance(result, Retry)
        assert result.after
        assert BACKOFF.first <= result.after <= BACKOFF.first * 2**number
    assert found[-1] == Done()
    failed = await playground.jobs.find(ANNA)
    assert (failed.record.state, failed.record.reason) == (
        JobState.FAILED,
        f"its process died or hung {MOST_LOSSES} times in a row",
    )


async def test_two_suspects_run_beside_each_other_once_the_first_has_stored_a_result(playground: Playground) -> None:
    waiting, gate = list[str](), asyncio.Event()

    async def found() -> str:
        return "found"

    async def run(iteration: Iteration) -> None:
        await iteration.step("search", found)
        waiting.append(iteration.user)
        await gate.wait()

    for job_id in (ANNA, BORIS):
        job = await playground.jobs.start(job_id)
        for number in range(SUSPECT):
            held = await playground.jobs.storage.save(replace_job(job, number), holder=f"attempt {number}")
            assert held
            job = await playground.jobs.find(job_id)
            await playground.jobs.storage.count_loss(job, "lost")
            job = await playground.jobs.find(job_id)
        assert (job.losses, job.holder) == (SUSPECT, "")
    playground.run = run
    playground.start_worker()
    await until(lambda: sorted(waiting) == ["1", "2"])
    gate.set()
    for job_id in (ANNA, BORIS):
        await playground.iterations(1, job_id)


def replace_job(job: StoredJob, number: int) -> StoredJob:
    """A change, as each attempt begins with one."""
    return StoredJob(job.id, replace(job.record, last_run=number + 1), job.version)
