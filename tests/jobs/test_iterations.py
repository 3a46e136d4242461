"""What an iteration stores: results of steps, units and effects, and what becomes of a job when it raises."""

import asyncio
import re
from datetime import timedelta
from typing import Any

from core.errors import Invalid
from core.jobs import Actor, JobState
from jobs import Finished, Iteration, Job, Pause, Schedule, Unclear, UnitFailed
from jobs.testing import JobTest, try_every_crash
from tests.jobs.conftest import ANNA, Playground
from tests.jobs.fake_service import FakeService


class Count(Job):
    name = "count"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> int:
        async def handle(item: int) -> None:
            await iteration.log(f"{item}")

        return await iteration.each([1, 2, 3], handle, key=str)


async def test_an_item_is_done_once_also_in_later_iterations(playground: Playground) -> None:
    service = FakeService()
    playground.run, playground.period = service.hunt, timedelta(seconds=1)
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(3)
    assert service.searches >= 3
    assert service.applied == [1, 2, 3]


async def _value(value: str) -> str:
    return value


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


async def test_each_returns_how_many_items_it_has_handled(playground: Playground) -> None:
    counts: list[int] = []

    async def handle(item: int) -> None: ...

    async def run(iteration: Iteration) -> None:
        counts.append(await iteration.each([1, 2], handle, key=lambda item: item))

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert counts == [2]


async def test_a_crash_does_not_change_how_many_items_an_iteration_has_handled() -> None:
    """`each` counted only the items of the last attempt, so what `run` returned depended on crashes."""

    async def story(test: JobTest) -> None:
        await test.start("count.1")
        assert (await test.job("count.1")).result == 3

    assert await try_every_crash(story, Count) > 5


async def test_a_result_may_have_a_mebibyte_as_json_and_not_a_byte_more(playground: Playground) -> None:
    refused: list[str] = []

    async def make(length: int) -> str:
        return "x" * (length - len('""'))

    async def run(iteration: Iteration) -> None:
        await iteration.step("largest", make, 2**20)
        try:
            await iteration.step("larger", make, 2**20 + 1)
        except Invalid as error:
            refused.append(error.code)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert refused == ["RESULT_TOO_LARGE"]


async def test_an_iteration_that_keeps_failing_fails_the_job_with_its_reason(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        raise UnitFailed("nonsense from the model")

    playground.run, playground.most_failures = run, 2
    playground.start_worker()
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert failed.record.reason == "nonsense from the model"
    lines = [line.text for line in await playground.jobs.log.last(ANNA)]
    assert lines[0] == "started by user"
    assert re.fullmatch("failure 1 of 2, tried again in [12] s: nonsense from the model", lines[1])
    assert lines[2:] == ["iteration 1 goes on", "failed: nonsense from the model"]
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
    await playground.in_state(JobState.FINISHED)
    lines = [line.text for line in await playground.jobs.log.last(ANNA)]
    assert lines == ["started by user", "finished: hired"]


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
