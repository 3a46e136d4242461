"""Jobs on a real server: results and units are kept, states hold, nothing is done twice."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest

from core.errors import Conflict, Forbidden, Invalid, NotFound
from core.jobs import Actor, JobId, JobState
from core.sign_in import Tokens, Vault
from core.sign_in.vault import new_key
from jobs import Finished, Iteration, Pause, Unclear, UnitFailed
from jobs.outside import Outside
from jobs.watchdog import Watchdog
from tests.jobs.conftest import ANNA, HOUR, Playground
from tests.support.waiting import until


class Service:
    """The outside service. `gate`: applications wait for it; `applied`: in the order of arrival."""

    def __init__(self) -> None:
        self.applied: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        self.searches = 0

    async def search(self) -> list[int]:
        self.searches += 1
        return [1, 2, 3]

    async def apply(self, item: int) -> str:
        self.waiting += 1
        await self.gate.wait()
        self.applied.append(item)
        return f"letter {item}"

    async def hunt(self, iteration: Iteration) -> None:
        found = await iteration.step("search", self.search)
        await iteration.each(found, self.apply, key=lambda item: item)


@pytest.mark.row("U-03")
async def test_a_started_job_is_running_before_any_work_begins(playground: Playground) -> None:
    job = await playground.jobs.start(ANNA)
    assert job.record.state is JobState.RUNNING
    service = Service()
    playground.run = service.hunt
    playground.start_worker()
    await playground.iterations(1)
    assert service.applied == [1, 2, 3]


async def test_two_starts_at_once_make_one_job(playground: Playground) -> None:
    service = Service()
    playground.run = service.hunt
    starts = [playground.jobs.start(ANNA) for _ in range(10)]
    results = await asyncio.gather(*starts, return_exceptions=True)
    refused = [one for one in results if isinstance(one, Conflict)]
    assert [one.code for one in refused] == ["JOB_ALREADY_RUNNING"] * 9
    playground.start_worker()
    await playground.iterations(1)
    assert service.searches == 1


@pytest.mark.row("U-06")
async def test_an_item_is_done_once_also_in_later_iterations(playground: Playground) -> None:
    service = Service()
    playground.run, playground.period = service.hunt, timedelta(seconds=1)
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(3)
    assert service.searches >= 3
    assert service.applied == [1, 2, 3]


@pytest.mark.row("U-07")
@pytest.mark.row("U-14")
async def test_a_shutdown_finishes_the_unit_in_hand_and_another_process_does_the_rest(playground: Playground) -> None:
    service = Service()
    service.gate.clear()
    playground.run = service.hunt
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await until(lambda: service.waiting == 1, within=20)
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


@pytest.mark.row("U-11")
@pytest.mark.row("U-12")
async def test_a_pause_is_seen_after_the_unit_in_hand_and_stays_after_a_restart(playground: Playground) -> None:
    service = Service()
    service.gate.clear()
    playground.run = service.hunt
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await until(lambda: service.waiting == 1, within=20)
    await playground.jobs.pause(ANNA, Actor.USER, "holiday")
    service.gate.set()
    await until(lambda: service.applied == [1], within=20)
    await playground.stop()
    playground.start_worker()
    playground.stack.advance_clock(2 * HOUR)
    await asyncio.sleep(0.5)
    assert service.applied == [1]
    assert (await playground.jobs.find(ANNA)).record.paused_by is Actor.USER
    await playground.jobs.resume(ANNA, Actor.USER)
    await playground.iterations(1)
    assert service.applied == [1, 2, 3]
    assert service.searches == 1


async def test_a_job_that_is_paused_and_resumed_in_one_unit_does_nothing_twice(playground: Playground) -> None:
    service = Service()
    service.gate.clear()
    playground.run = service.hunt
    playground.start_worker()
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await until(lambda: service.waiting == 1, within=20)
    for _ in range(3):
        await playground.jobs.pause(ANNA, Actor.USER)
        await playground.jobs.resume(ANNA, Actor.USER)
    await asyncio.sleep(0.2)
    assert service.waiting == 1
    service.gate.set()
    await playground.iterations(1)
    assert service.applied == [1, 2, 3]


@pytest.mark.row("U-21")
async def test_a_limit_pauses_the_job_and_it_resumes_by_itself(playground: Playground) -> None:
    calls: list[int] = []

    async def run(iteration: Iteration) -> None:
        calls.append(iteration.number)
        if len(calls) == 1:
            until_tomorrow = playground.jobs.now() + timedelta(hours=12)
            raise Pause(Actor.LIMIT, "200 applications a day", until_tomorrow)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    paused = await playground.in_state(JobState.PAUSED)
    assert paused.record.reason == "200 applications a day"
    playground.stack.advance_clock(timedelta(hours=12, seconds=1))
    await playground.iterations(1)
    assert calls == [0, 0]


async def test_a_pause_of_the_user_outlasts_the_end_of_a_limit(playground: Playground) -> None:
    playground.run = Service().hunt
    await playground.jobs.start(ANNA)
    await playground.jobs.pause(ANNA, Actor.LIMIT, "limit", playground.jobs.now() + timedelta(minutes=1))
    await playground.jobs.pause(ANNA, Actor.USER)
    playground.start_worker()
    playground.stack.advance_clock(HOUR)
    await asyncio.sleep(0.5)
    assert (await playground.jobs.find(ANNA)).record.state is JobState.PAUSED
    with pytest.raises(Forbidden):
        await playground.jobs.resume(ANNA, Actor.LIMIT)


@pytest.mark.row("U-13")
async def test_after_a_kill_another_process_goes_on_when_the_lease_ends(playground: Playground) -> None:
    service = Service()
    service.gate.clear()
    playground.run = service.hunt
    playground.start_worker(lease=timedelta(seconds=1))
    await playground.jobs.start(ANNA)
    await until(lambda: service.waiting == 1, within=20)
    await playground.kill()
    service.gate.set()
    playground.start_worker(lease=timedelta(seconds=1))
    await playground.iterations(1)
    assert service.applied == [1, 2, 3]
    assert service.searches == 1


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
    assert await storage.write(ANNA, "an older attempt", "step", "mine", '"first"') == "lost"
    assert await storage.end_iteration(job, "an older attempt", "") is False


async def _value(value: str) -> str:
    return value


@pytest.mark.row("U-06")
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


async def test_a_unit_that_fails_is_recorded_and_the_next_one_begins(playground: Playground) -> None:
    handled: list[int] = []

    async def handle(item: int) -> None:
        handled.append(item)
        if item == 1:
            raise UnitFailed("closed")
        if item == 2:
            raise Unclear("no answer")

    async def run(iteration: Iteration) -> None:
        await iteration.each([1, 2, 3, 3], handle, key=lambda item: item)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert handled == [1, 2, 3]
    units = await playground.jobs.storage.units(ANNA, ["unit:1", "unit:2", "unit:3"])
    assert [unit.partition('"status":"')[2].partition('"')[0] for unit in units if unit] == [
        "failed",
        "unknown",
        "done",
    ]


async def test_an_iteration_that_keeps_failing_fails_the_job_with_its_reason(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        raise ValueError("nonsense from the model")

    playground.run, playground.most_failures = run, 2
    playground.start_worker()
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert failed.record.reason == "ValueError: nonsense from the model"
    lines = [line.text for line in await playground.jobs.log.last(ANNA)]
    assert lines[0] == "started by user"
    assert re.fullmatch("failure 1 of 2, tried again in [12] s: ValueError: nonsense from the model", lines[1])
    assert lines[2:] == ["failed: ValueError: nonsense from the model"]
    again = await playground.jobs.start(ANNA)
    assert again.record.state is JobState.RUNNING


async def test_a_result_that_is_too_large_fails_the_iteration(playground: Playground) -> None:
    async def large() -> str:
        return "x" * 10_000_000

    async def run(iteration: Iteration) -> None:
        await iteration.step("large", large)

    playground.run, playground.most_failures = run, 1
    playground.start_worker()
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert "at most 1048576" in failed.record.reason


async def test_a_job_may_end_by_itself(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        raise Finished("hired")

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.in_state(JobState.STOPPED)
    lines = [line.text for line in await playground.jobs.log.last(ANNA)]
    assert lines == ["started by user", "finished: hired", "stopped by user"]


async def test_unknown_kinds_jobs_and_zones_are_refused(playground: Playground) -> None:
    with pytest.raises(Invalid, match="no kind of job 'nothing'"):
        await playground.jobs.start(JobId("university", "nothing", "1"))
    with pytest.raises(NotFound):
        await playground.jobs.pause(ANNA, Actor.USER)
    with pytest.raises(Invalid, match="Atlantis"):
        await playground.jobs.start(ANNA, timezone="Atlantis/Center")
    with pytest.raises(Invalid, match="65536"):
        await playground.jobs.start(ANNA, {"profile": "x" * 100_000})


@pytest.mark.row("U-13")
async def test_the_watchdog_gives_a_job_without_a_task_a_new_one_and_leaves_others_alone(
    playground: Playground,
) -> None:
    service = Service()
    playground.run = service.hunt
    job = await playground.jobs.start(ANNA)
    other = await playground.jobs.start(JobId("university", "hunt", "2"))
    await playground.stack.queue.cancel(job.record.task)
    playground.stack.advance_clock(timedelta(minutes=1))
    await playground.jobs.kinds.publish(playground.registry.schedules)
    watchdog = Watchdog(playground.stack.store, playground.jobs, {})
    assert await watchdog.look() == 1
    assert await watchdog.look() == 0
    assert (await playground.jobs.find(other.id)).version == other.version
    playground.start_worker()
    await playground.iterations(1)


async def test_jobs_are_listed_by_state_and_kind_and_counted(playground: Playground) -> None:
    ids = [JobId("university", "hunt", str(user)) for user in range(5)]
    for job_id in ids:
        await playground.jobs.start(job_id)
    await playground.jobs.pause(ids[1], Actor.ADMIN)
    await playground.jobs.stop(ids[2], Actor.USER)
    counts = await playground.jobs.storage.counts("university")
    assert counts == {JobState.RUNNING: 3, JobState.PAUSED: 1, JobState.STOPPED: 1, JobState.FAILED: 0}
    found, cursor = await playground.jobs.list("university", JobState.PAUSED)
    assert [job.id for job in found] == [ids[1]]
    assert cursor == ""
    first, cursor = await playground.jobs.list("university", limit=3)
    rest, end = await playground.jobs.list("university", limit=3, cursor=cursor)
    assert {job.id for job in [*first, *rest]} == set(ids)
    assert end == ""
    assert await playground.jobs.list("another") == ([], "")
    with pytest.raises(Invalid):
        await playground.jobs.list("university", cursor="nonsense")


@pytest.mark.row("U-22")
async def test_the_live_log_goes_on_after_the_last_line_that_was_seen(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        for n in range(3):
            await iteration.log(f"applied to {n}")

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    lines = await playground.jobs.log.last(ANNA)
    assert [line.text for line in lines] == ["started by user", "applied to 0", "applied to 1", "applied to 2"]
    following = playground.jobs.log.follow(ANNA, after=lines[1].id)
    seen = [await asyncio.wait_for(anext(following), 20) for _ in range(2)]
    assert [line.text for line in seen] == ["applied to 1", "applied to 2"]
    await playground.jobs.pause(ANNA, Actor.USER, "enough")
    assert (await asyncio.wait_for(anext(following), 20)).text == "paused by user: enough"
    await following.aclose()


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


@pytest.mark.row("U-21")
async def test_without_a_sign_in_the_job_is_paused_and_says_so(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        await iteration.access_token("vacancies")

    playground.run = run
    store = playground.stack.store
    playground.outside = Outside(store, Tokens(store, Vault([new_key()]), {}))
    playground.start_worker()
    await playground.jobs.start(ANNA)
    paused = await playground.in_state(JobState.PAUSED)
    assert (paused.record.paused_by, paused.record.reason) == (Actor.SIGN_IN, "sign in to vacancies again")


async def test_a_job_that_is_started_again_uses_no_results_of_before(playground: Playground) -> None:
    seen: list[Any] = []

    async def run(iteration: Iteration) -> None:
        seen.append(await iteration.step("number", _value, str(len(seen))))
        if len(seen) == 1:
            raise Pause(Actor.USER, "wait")

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.in_state(JobState.PAUSED)
    await playground.jobs.stop(ANNA, Actor.USER)
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert seen == ["0", "1"]


async def test_a_step_that_ends_after_a_stop_leaves_nothing_for_the_next_start(playground: Playground) -> None:
    began, gate, seen = asyncio.Event(), asyncio.Event(), list[Any]()

    async def search() -> int:
        began.set()
        await gate.wait()
        return len(seen)

    async def run(iteration: Iteration) -> None:
        seen.append("begun")
        seen.append(await iteration.step("search", search))

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await asyncio.wait_for(began.wait(), 20)
    await playground.jobs.stop(ANNA, Actor.USER)
    await playground.jobs.start(ANNA)
    gate.set()
    await playground.iterations(1)
    assert seen == ["begun", "begun", 2]
