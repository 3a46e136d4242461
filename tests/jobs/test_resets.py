"""What an iteration has stored is listed in its order, and the iteration is repeated from one of its steps (U-29)."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from core.errors import Conflict, Forbidden, Invalid, NotFound
from core.jobs import Actor, JobState
from core.jobs.record import ResetPoint
from core.jobs.steps import StepView, point_of
from core.redis.keys import KEYS
from jobs import Iteration, Job, RollBack, Schedule
from jobs.testing import JobTest, try_every_crash
from tests.jobs.conftest import ANNA, HOUR, LEASE, Playground
from tests.support.waiting import until

TRIP = "trip.1"


class Services:
    """What the trip calls, so that a test puts doubles in their places."""

    @staticmethod
    async def search(query: str) -> str:
        return query

    @staticmethod
    async def book(found: str, *, idempotency_key: str = "") -> str:
        return found

    @staticmethod
    async def letter(booking: str) -> str:
        return booking


class Trip(Job):
    name = "trip"
    schedule = Schedule()
    most_failures = 1

    async def run(self, iteration: Iteration) -> str:
        found = await iteration.step("search", Services.search, iteration.parameters["query"])
        booking = await iteration.effect("book", Services.book, found, idempotent_for=HOUR)
        await iteration.sleep(timedelta(minutes=1))
        who = await iteration.wait("go")
        letter = await iteration.step("letter", Services.letter, booking)
        await iteration.each(["a", "b"], _handled, key=str)
        return str(await iteration.step("end", _joined, [letter, who]))


class Tough(Trip):
    most_failures = 5


async def _handled(item: str) -> str:
    return item * 2


async def _joined(texts: Sequence[str]) -> str:
    return " ".join(texts)


async def failed_trip(test: JobTest) -> dict[str, Any]:
    """A trip that has failed at its letter; returns the doubles of what it calls."""
    doubles = {name: test.double(Services, name, name.upper()) for name in ("search", "book", "letter")}
    doubles["letter"].answer = ValueError("no paper")
    await test.start(TRIP, {"query": "Rome"})
    await test.advance(timedelta(minutes=2))
    await test.signal(TRIP, "go", "Anna")
    assert (await test.job(TRIP)).state is JobState.FAILED
    return doubles


async def steps_of(test: JobTest) -> list[StepView]:
    return (await test.jobs.steps.page(test.id_of(TRIP)))[0]


async def test_what_a_failed_job_has_stored_is_listed_in_its_order_and_it_goes_on_from_the_step_that_is_named() -> None:
    async with JobTest.open(Trip) as test:
        doubles = await failed_trip(test)
        assert [(step.id, step.status, step.result) for step in await steps_of(test) if step.id != "sleep"] == [
            ("step:search", "done", "SEARCH"),
            ("effect:book", "done", "BOOK"),
            ("wait:go", "received", "Anna"),
        ]
        places = [step.at for step in await steps_of(test)]
        assert places == sorted(set(places)), "no two have one place"
        doubles["letter"].answer = "LETTER"
        doubles["search"].answer = "FOUND"
        point = point_of("search")
        plan = await test.jobs.steps.plan(test.id_of(TRIP), point)
        assert [step.id for step in plan.dropped] == ["step:search", "sleep"]
        assert [step.id for step in plan.kept] == ["effect:book", "wait:go"]
        job = await test.jobs.reset(test.id_of(TRIP), point, Actor.ADMIN)
        assert (job.record.state, job.record.reason) == (JobState.RUNNING, "")
        await test.advance(timedelta(minutes=2))
        view = await test.job(TRIP)
        assert (view.state, view.result) == (JobState.FINISHED, "LETTER Anna")
        assert [len(doubles[name].calls) for name in ("search", "book", "letter")] == [2, 1, 1]
        assert "reset to step:search by admin" in await test.log(TRIP)


async def test_a_job_that_has_ended_is_repeated_from_a_later_step_and_before_it_nothing_is_done() -> None:
    async with JobTest.open(Trip) as test:
        doubles = await failed_trip(test)
        doubles["letter"].answer = "LETTER"
        await test.jobs.start(test.id_of(TRIP))
        await test.advance(timedelta(minutes=2))
        await test.signal(TRIP, "go", "Bert")
        assert (await test.job(TRIP)).result == "LETTER Bert"
        doubles["letter"].answer = "NEW LETTER"
        await test.jobs.reset(test.id_of(TRIP), point_of("letter"), Actor.USER)
        await test.run()
        assert (await test.job(TRIP)).result == "NEW LETTER Bert"
        assert [len(doubles[name].calls) for name in ("search", "book", "letter")] == [2, 1, 2]


async def test_effects_and_items_are_done_again_only_when_that_is_asked_for() -> None:
    async with JobTest.open(Trip) as test:
        doubles = await failed_trip(test)
        doubles["letter"].answer, doubles["book"].answer = "LETTER", "BOOK 2"
        point = point_of("effect:book", again=True)
        plan = await test.jobs.steps.plan(test.id_of(TRIP), point)
        assert [step.id for step in plan.dropped] == ["effect:book", "sleep"]
        await test.jobs.reset(test.id_of(TRIP), point, Actor.ADMIN)
        await test.advance(timedelta(minutes=2))
        assert [len(doubles[name].calls) for name in ("search", "book", "letter")] == [1, 2, 1]
        assert doubles["letter"].calls == [("BOOK 2",)]
        plan = await test.jobs.steps.plan(test.id_of(TRIP), point_of("letter"))
        assert [step.id for step in plan.kept] == ["unit:a", "unit:b"]


@pytest.mark.parametrize("again", [False, True])
async def test_a_reset_survives_a_kill_at_every_point(again: bool) -> None:
    async def story(test: JobTest) -> None:
        doubles = {name: test.double(Services, name, name.upper()) for name in ("search", "book", "letter")}
        await test.start(TRIP, {"query": "Rome"})
        await test.advance(timedelta(minutes=2))
        await test.jobs.reset(test.id_of(TRIP), point_of("search", again=again), Actor.ADMIN)
        await test.advance(timedelta(minutes=2))
        await test.signal(TRIP, "go", "Anna")
        await test.advance(timedelta(minutes=2))
        assert (await test.job(TRIP)).result == "LETTER Anna"
        assert len(doubles["search"].calls) >= 2

    await try_every_crash(story, Tough)


async def test_the_attempt_that_runs_at_a_reset_ends_after_its_effect_and_its_results_are_not_used(
    playground: Playground,
) -> None:
    """Two processes: the one in whose hands the job is, and the one that goes on with it."""
    gate, calls = asyncio.Event(), list[str]()

    async def apply() -> str:
        calls.append("apply")
        await gate.wait()
        return "applied"

    async def search() -> int:
        calls.append("search")
        return calls.count("search")

    async def note(found: int) -> None:
        calls.append(f"found {found}")

    async def run(iteration: Iteration) -> None:
        found = await iteration.step("search", search)
        await iteration.effect("apply", apply)
        await iteration.step("note", note, found)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await until(lambda: "apply" in calls)
    playground.start_worker()
    with pytest.raises(Conflict, match="at work at this moment"):
        await playground.jobs.reset(ANNA, point_of("search", again=True), Actor.ADMIN)
    await playground.jobs.reset(ANNA, point_of("search"), Actor.ADMIN)
    gate.set()
    await playground.iterations(1)
    assert calls == ["search", "apply", "found 1", "search", "found 2"]


async def test_after_a_reset_and_a_kill_another_process_goes_on_from_the_step(playground: Playground) -> None:
    service = await playground.begin_hunt(lease=timedelta(seconds=1))
    await playground.jobs.reset(ANNA, point_of("search"), Actor.ADMIN)
    await playground.kill()
    service.gate.set()
    playground.start_worker(lease=timedelta(seconds=1))
    await playground.iterations(1)
    assert service.searches == 2
    assert sorted(service.applied) == [1, 2, 3]


async def test_a_paused_job_stays_paused_and_a_pause_of_another_is_respected(playground: Playground) -> None:
    await playground.begin_hunt()
    await playground.jobs.pause(ANNA, Actor.ADMIN, "enough")
    with pytest.raises(Forbidden):
        await playground.jobs.reset(ANNA, point_of("search"), Actor.USER)
    job = await playground.jobs.reset(ANNA, point_of("search"), Actor.ADMIN)
    assert (job.record.state, job.record.reason) == (JobState.PAUSED, "enough")


async def test_what_an_ended_job_has_stored_goes_with_the_retention_and_at_a_new_start(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        await iteration.step("search", _handled, "x")
        raise RollBack("there is nothing")

    playground.run = run
    playground.start_worker(LEASE)
    await playground.jobs.start(ANNA)
    await playground.in_state(JobState.FAILED)
    shard, name = 0, f"{ANNA.tenant}/{ANNA.name}"
    keys = [KEYS[kind].at(shard, name) for kind in ("job_steps", "job_order")]
    month = timedelta(days=30) / timedelta(milliseconds=1)
    for key in keys:
        assert 0 < await playground.stack.store.command("PTTL", key) <= month
    await playground.kill()
    await playground.jobs.reset(ANNA, point_of("search"), Actor.ADMIN)
    assert [await playground.stack.store.command("PTTL", key) for key in keys] == [-2, -1], "only the places are left"
    await playground.jobs.stop(ANNA, Actor.USER)
    await playground.jobs.start(ANNA)
    assert [await playground.stack.store.command("PTTL", key) for key in keys] == [-2, -2]
    with pytest.raises(NotFound, match="has stored nothing under 'step:search'"):
        await playground.jobs.reset(ANNA, point_of("search"), Actor.ADMIN)


class Holiday(Job):
    name = "holiday"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> None:
        await iteration.step("search", _handled, "x")
        await iteration.effect("flight", Services.book, "Rome")
        iteration.compensate("flight", Services.letter, "Rome")
        raise RollBack("no room")


async def test_what_was_taken_back_is_repeated_with_its_effects_or_not_at_all() -> None:
    async with JobTest.open(Holiday) as test:
        flight, back = test.double(Services, "book", "LH 1"), test.double(Services, "letter")
        await test.start("holiday.1")
        job_id = test.id_of("holiday.1")
        with pytest.raises(Conflict, match="has taken back what it had done: effect:compensate flight"):
            await test.jobs.reset(job_id, point_of("search"), Actor.ADMIN)
        await test.jobs.reset(job_id, point_of("search", again=True), Actor.ADMIN)
        await test.run()
        assert (len(flight.calls), len(back.calls)) == (2, 2)


async def test_a_name_that_no_list_has_is_refused() -> None:
    assert [point_of(name).name for name in ("a", "step:a", "effect:a", "unit:a", "unit x:a")] == [
        "step:a",
        "step:a",
        "effect:a",
        "unit:a",
        "unit x:a",
    ]
    assert point_of("a", again=True) == ResetPoint("step:a", True)
    for name in ("", "sleep\t1"):
        with pytest.raises(Invalid):
            point_of(name)


async def test_results_of_one_moment_keep_their_order(playground: Playground) -> None:
    begun = await playground.jobs.start(ANNA)
    assert await playground.jobs.storage.save(begun, holder="1 attempt")
    names = [f"step:{number}" for number in range(60, 0, -1)]
    await asyncio.gather(*(playground.jobs.storage.write_step(ANNA, "1 attempt", name, "1") for name in names))
    assert [step.id for step in (await playground.jobs.steps.page(ANNA))[0]] == names


async def test_a_long_list_comes_in_pages(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        for number in range(25):
            await iteration.step(f"{number}", _handled, "x" * 3000)
            await iteration.log("a line, which is no result")
        await iteration.wait("never")

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)

    async def sleeps() -> bool:
        return (await playground.jobs.find(ANNA)).record.suspended

    await until(sleeps)
    seen, cursor = list[StepView](), "0"
    while cursor:
        page, cursor = await playground.jobs.steps.page(ANNA, cursor, 10)
        seen += page
    assert [step.id for step in seen] == [*(f"step:{number}" for number in range(25)), "wait:never"]
    assert {step.result for step in seen[:-1]} == {None}, "large results are not shown in a list"
    with pytest.raises(Invalid):
        await playground.jobs.steps.page(ANNA, "nonsense")
