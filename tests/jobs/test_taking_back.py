"""A job that is stopped takes back what its iteration has done, whatever crashes; one that is abandoned does not."""

from datetime import timedelta
from typing import Any, ClassVar

import pytest

from core.errors import Conflict
from core.jobs import Actor
from core.jobs.record import ResetPoint
from core.jobs.transitions import PERSON_DELETED
from jobs import Iteration, Job, Pause, RollBack, Schedule
from jobs.testing import JobTest, run_story, try_every_crash
from tests.support.audited import violations_in

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


class outside:  # noqa: N801 - stands for a module
    book: ClassVar[Any] = None
    cancel: ClassVar[Any] = None


async def booked(iteration: Iteration, part: str) -> None:
    await iteration.effect(f"book {part}", outside.book, part, idempotent_for=DAY)
    iteration.compensate(part, outside.cancel, part, idempotent_for=DAY)


class Trip(Job):
    """Books a flight, sleeps, then what its user names, and waits for the payment."""

    name = "trip"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> None:
        await iteration.change_parameters(begun=True)
        await booked(iteration, "flight")
        await iteration.sleep(MINUTE)
        await iteration.gather(booked(iteration, "hotel"), booked(iteration, "car"))
        if await iteration.wait("paid"):
            await booked(iteration, "insurance")


class Family(Job):
    """Books a train, and has a child book the rest."""

    name = "family"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> None:
        await booked(iteration, "train")
        child = await iteration.start_child("trip", "child", {})
        await child.result()


async def _stop(test: JobTest, job: str, **how: Any) -> str:
    view = await test.jobs.stop(test.id_of(job), Actor.USER, "no time", **how)
    return str(view.record.state)


async def test_a_stopped_job_takes_back_what_it_has_done_whatever_crashes() -> None:
    async def story(test: JobTest) -> None:
        test.double(outside, "book")
        cancelled = test.double(outside, "cancel")
        await test.start("trip.1", {})
        await test.advance(2 * MINUTE)
        assert await _stop(test, "trip.1") == "stopping"
        with pytest.raises(Conflict, match="stopping"):
            await test.jobs.signal(test.id_of("trip.1"), "paid", True)
        await test.advance(MINUTE)
        view = await test.job("trip.1")
        assert (view.state, view.reason, view.next_run) == ("stopped", "no time", None)
        assert cancelled.calls == [("car",), ("hotel",), ("flight",)]
        assert await violations_in(test.store) == []

    assert await try_every_crash(story, Trip) > 40


async def test_a_stopped_parent_and_its_child_take_back_what_they_have_done_whatever_crashes() -> None:
    async def story(test: JobTest) -> None:
        test.double(outside, "book")
        cancelled = test.double(outside, "cancel")
        await test.start("family.1", {})
        assert await _stop(test, "family.1") == "stopping"
        await test.advance(2 * MINUTE)
        views = [await test.job(name) for name in ("family.1", "trip~child.1")]
        assert [(view.state, view.reason) for view in views] == [
            ("stopped", "no time"),
            ("stopped", "its parent is stopping"),
        ]
        assert sorted(cancelled.calls) == [("flight",), ("train",)]

    assert await try_every_crash(story, Trip, Family) > 20


@pytest.mark.parametrize(("reason", "kept"), [(PERSON_DELETED, {}), ("no time", {"begun": True, "name": "Anna"})])
async def test_the_job_of_a_deleted_person_forgets_what_it_knew_when_it_has_taken_back(
    reason: str, kept: dict[str, Any]
) -> None:
    async with JobTest.open(Trip) as test:
        test.double(outside, "book")
        cancelled = test.double(outside, "cancel")
        await test.start("trip.1", {"name": "Anna"})
        job = test.id_of("trip.1")
        await test.jobs.stop(job, Actor.ADMIN, reason)
        await test.jobs.forget(job.tenant, job.user)
        assert (await test.jobs.find(job)).record.parameters == {"begun": True, "name": "Anna"}
        await test.advance(2 * MINUTE)
        assert cancelled.calls == [("flight",)]
        assert (await test.jobs.find(job)).record.parameters == kept
        assert bool(await test.jobs.log.last(job)) == bool(kept)


async def test_an_abandoned_job_takes_nothing_back() -> None:
    async with JobTest.open(Trip) as test:
        test.double(outside, "book")
        cancelled = test.double(outside, "cancel")
        for job, is_stopping in (("trip.1", False), ("trip.2", True)):
            await test.start(job, {})
            if is_stopping:
                assert await _stop(test, job) == "stopping"
            assert await _stop(test, job, abandon=True) == "stopped"
        await test.advance(2 * MINUTE)
        assert cancelled.calls == []
        assert await violations_in(test.store) == []


async def test_only_an_iteration_that_has_begun_is_taken_back_and_the_pause_of_an_administrator_stays() -> None:
    async with JobTest.open(Trip) as test:
        test.double(outside, "book")
        cancelled = test.double(outside, "cancel")
        await test.start("trip.1", {}, at=test.now + DAY)
        assert await _stop(test, "trip.1") == "stopped"
        await test.start("trip.2", {})
        await test.jobs.pause(test.id_of("trip.2"), Actor.ADMIN, "maintenance")
        assert await _stop(test, "trip.2") == "stopping"
        await test.run()
        view = await test.job("trip.2")
        assert (view.state, view.paused_by, view.reason) == ("stopped", "admin", "maintenance")
        assert cancelled.calls == [("flight",)]


@pytest.mark.parametrize("lost", [Pause(Actor.LIMIT, "later"), ConnectionError(), RollBack("no")])
async def test_a_compensation_that_fails_for_good_fails_the_job(lost: Exception) -> None:
    """A pause would leave it waiting for somebody who has stopped it."""
    async with JobTest.open(Trip) as test:
        test.double(outside, "book")
        test.double(outside, "cancel", lost)
        await test.start("trip.1", {})
        assert await _stop(test, "trip.1") == "stopping"
        await test.advance(timedelta(days=2))
        assert (await test.job("trip.1")).state == "failed"


class Careless(Job):
    """Books something whose call was interrupted; then a call fails that is no step."""

    name = "careless"
    schedule = Schedule()
    outages: ClassVar[int] = 0

    async def run(self, iteration: Iteration) -> None:
        if Careless.outages:
            Careless.outages -= 1
            raise ConnectionError
        await booked(iteration, "flight")
        await iteration.sleep(MINUTE)


class Daily(Careless):
    name = "daily"
    schedule = Schedule(DAY)


async def test_an_iteration_that_has_ended_is_not_taken_back() -> None:
    async with JobTest.open(Daily) as test:
        test.double(outside, "book")
        cancelled = test.double(outside, "cancel")
        await test.start("daily.1", {})
        await test.advance(2 * MINUTE)
        assert await _stop(test, "daily.1") == "stopped"
        await test.run()
        assert cancelled.calls == []


async def test_an_outage_while_the_iteration_is_repeated_loses_no_compensation() -> None:
    async with JobTest.open(Careless) as test:
        test.double(outside, "book")
        cancelled = test.double(outside, "cancel")
        await test.start("careless.1", {})
        Careless.outages = 2
        assert await _stop(test, "careless.1") == "stopping"
        await test.advance(MINUTE)
        assert (await test.job("careless.1")).state == "stopped"
        assert cancelled.calls == [("flight",)]


async def test_an_effect_whose_call_was_interrupted_is_settled_with_its_key_and_taken_back() -> None:
    async with JobTest.open(Trip) as test:
        answers: list[Any] = [ConnectionError()]
        flight = test.double(outside, "book", lambda part: answers.pop() if answers else part)
        cancelled = test.double(outside, "cancel")
        await test.start("trip.1", {})
        assert flight.calls == [], "the answer was lost"
        assert await _stop(test, "trip.1") == "stopping"
        await test.advance(MINUTE)
        assert (flight.calls, cancelled.calls) == ([("flight",)], [("flight",)])
        with pytest.raises(Conflict):
            await test.jobs.reset(test.id_of("trip.1"), ResetPoint("effect:book flight"), Actor.USER)


class ByItem(Job):
    name = "by-item"
    schedule = Schedule()
    most_failures = 1

    async def run(self, iteration: Iteration) -> None:
        async def handle(part: str) -> None:
            await booked(iteration, part)

        await iteration.each(["flight"], handle, key=str)


async def test_a_compensation_in_an_item_is_refused_because_a_repetition_would_not_know_it() -> None:
    async def story(test: JobTest) -> None:
        test.double(outside, "book")
        await test.start("by-item.1", {})
        view = await test.job("by-item.1")
        assert view.state == "failed"
        assert "names no compensation" in (view.reason or "")

    await run_story(story, ByItem)
