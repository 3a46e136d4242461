"""Jobs are started, listed and counted; what cannot be done is refused."""

import asyncio
from typing import Any

import pytest

from core.errors import Conflict, Invalid, NotFound
from core.jobs import Actor, JobId, JobState
from core.jobs.views import Wanted
from tests.jobs.conftest import ANNA, Playground
from tests.jobs.fake_service import FakeService


async def test_a_started_job_is_running_before_any_work_begins(playground: Playground) -> None:
    job = await playground.jobs.start(ANNA)
    assert job.record.state is JobState.RUNNING
    service = FakeService()
    playground.run = service.hunt
    playground.start_worker()
    await playground.iterations(1)
    assert service.applied == [1, 2, 3]


async def test_two_starts_at_once_make_one_job(playground: Playground) -> None:
    service = FakeService()
    playground.run = service.hunt
    starts = [playground.jobs.start(ANNA) for _ in range(10)]
    results = await asyncio.gather(*starts, return_exceptions=True)
    refused = [one for one in results if isinstance(one, Conflict)]
    assert [one.code for one in refused] == ["JOB_ALREADY_RUNNING"] * 9
    playground.start_worker()
    await playground.iterations(1)
    assert service.searches == 1


async def test_unknown_kinds_jobs_and_zones_are_refused(playground: Playground) -> None:
    with pytest.raises(Invalid, match="no kind of job 'nothing'"):
        await playground.jobs.start(JobId("university", "nothing", "1"))
    with pytest.raises(NotFound):
        await playground.jobs.pause(ANNA, Actor.USER)
    with pytest.raises(Invalid, match="Atlantis"):
        await playground.jobs.start(ANNA, timezone="Atlantis/Center")
    with pytest.raises(Invalid, match="65536"):
        await playground.jobs.start(ANNA, {"profile": "x" * 100_000})


async def test_jobs_are_listed_by_state_and_kind_and_counted(playground: Playground) -> None:
    ids = [JobId("university", "hunt", str(user)) for user in range(5)]
    for job_id in ids:
        await playground.jobs.start(job_id)
    await playground.jobs.pause(ids[1], Actor.ADMIN)
    await playground.jobs.stop(ids[2], Actor.USER)
    counts = await playground.jobs.storage.counts("university")
    few = {JobState.RUNNING: 3, JobState.PAUSED: 1, JobState.STOPPED: 1}
    assert counts == {**dict.fromkeys(JobState, 0), **few}
    found, cursor = await playground.jobs.list("university", Wanted(JobState.PAUSED))
    assert [job.id for job in found] == [ids[1]]
    assert cursor == ""
    first, cursor = await playground.jobs.list("university", limit=3)
    rest, end = await playground.jobs.list("university", limit=3, cursor=cursor)
    assert {job.id for job in [*first, *rest]} == set(ids)
    assert end == ""
    assert await playground.jobs.list("another") == ([], "")
    with pytest.raises(Invalid):
        await playground.jobs.list("university", cursor="nonsense")


async def test_a_change_whose_reply_was_lost_is_made_once(playground: Playground) -> None:
    calls = 0
    run = playground.stack.store.run

    async def repeated(name: str, shard: int, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        await run(name, shard, *arguments)
        return await run(name, shard, *arguments)

    playground.stack.store.run = repeated  # type: ignore[method-assign]
    job = await playground.jobs.start(ANNA)
    assert (job.version, job.record.state, calls) == (1, JobState.RUNNING, 1)
    assert [line.text for line in await playground.jobs.log.last(ANNA)] == ["started by user"]
