"""Jobs that start others, wait for them and end with them; jobs with keys; taking back what was done."""

import asyncio
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from core.errors import NotFound
from core.jobs import Actor, JobId, JobState
from core.redis.cancel_and_wait import cancel_and_wait
from jobs import ChildFailed, Iteration, Job, RollBack, Schedule, UnitFailed
from jobs.recovery import Watchdog
from jobs.testing import JobTest, try_every_crash
from tests.support.audited import violations_in
from tests.support.waiting import until

HOUR = timedelta(hours=1)


class outside:  # noqa: N801 - stands for a module
    print_letter: ClassVar[Any] = None
    book: ClassVar[Any] = None
    cancel: ClassVar[Any] = None


class Letter(Job):
    name = "letter"
    schedule = Schedule()
    most_failures = 1

    async def run(self, iteration: Iteration) -> str:
        await iteration.sleep(HOUR)
        if iteration.parameters["to"] == "nobody":
            raise UnitFailed("no address")
        await iteration.effect(
            "print", outside.print_letter, iteration.parameters["to"], idempotent_for=timedelta(days=1)
        )
        return f"a letter to {iteration.parameters['to']}"


class Mailing(Job):
    """Sends a letter to each, and returns what became of them."""

    name = "mailing"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> list[str]:
        children = [
            await iteration.start_child("letter", str(number), {"to": to})
            for number, to in enumerate(iteration.parameters["to"])
        ]
        ends: list[str] = []
        for child in children:
            try:
                ends.append(await child.result(returns=str))
            except ChildFailed as failure:
                ends.append(str(failure))
        return ends


async def test_a_job_waits_for_its_children_whatever_crashes() -> None:
    async def story(test: JobTest) -> None:
        printed = test.double(outside, "print_letter")
        await test.start("mailing.1", {"to": ["Anna", "nobody", "Boris"]})
        assert sorted((await test.job("mailing.1")).children) == ["letter~0.1", "letter~1.1", "letter~2.1"]
        await test.advance(HOUR + timedelta(minutes=1))
        view = await test.job("mailing.1")
        assert (view.state, view.iterations) == ("finished", 1)
        assert view.result == [
            "a letter to Anna",
            "the child letter~1.1 is failed: no address",
            "a letter to Boris",
        ]
        assert sorted(printed.calls) == [("Anna",), ("Boris",)]

    assert await try_every_crash(story, Letter, Mailing) > 30


@pytest.mark.parametrize("end", ["stop", "fail"])
async def test_children_end_with_their_parent(end: str) -> None:
    async with JobTest.open(Letter, Mailing) as test:
        printed = test.double(outside, "print_letter")
        await test.start("mailing.1", {"to": ["Anna", "Boris"]})
        parent = test.id_of("mailing.1")
        await (test.jobs.stop(parent, Actor.USER) if end == "stop" else test.jobs.fail(parent, "broken"))
        await test.advance(2 * HOUR)
        assert printed.calls == []
        children = [await test.job(f"letter~{number}.1") for number in range(2)]
        assert [(child.state, child.reason) for child in children] == [
            ("stopped", f"its parent is {'stopped' if end == 'stop' else 'failed'}")
        ] * 2


class Digest(Job):
    """Starts a letter each day, and waits for none."""

    name = "digest"
    schedule = Schedule(timedelta(days=1))

    async def run(self, iteration: Iteration) -> None:
        await iteration.start_child("letter", "0", {"to": "Anna"})


async def test_a_child_of_an_iteration_that_has_ended_ends_with_its_parent() -> None:
    async with JobTest.open(Letter, Digest) as test:
        printed = test.double(outside, "print_letter")
        await test.start("digest.1")
        assert (await test.job("digest.1")).iterations == 1
        await test.jobs.stop(test.id_of("digest.1"), Actor.USER)
        await test.advance(2 * HOUR)
        assert ((await test.job("letter~0.1")).state, printed.calls) == ("stopped", [])


@pytest.mark.parametrize("end", ["stop", "fail"])
async def test_a_child_that_has_failed_keeps_its_reason_when_its_parent_ends(end: str) -> None:
    async with JobTest.open(Letter, Mailing) as test:
        await test.start("mailing.1", {"to": ["nobody", "Anna"]})
        child, parent = test.id_of("letter~0.1"), test.id_of("mailing.1")
        await test.jobs.fail(child, "no address")
        await (test.jobs.stop(parent, Actor.USER) if end == "stop" else test.jobs.fail(parent, "broken"))
        await test.advance(HOUR)
        assert [((view := await test.job(f"letter~{n}.1")).state, view.reason) for n in (0, 1)] == [
            ("failed", "no address"),
            ("stopped", f"its parent is {'stopped' if end == 'stop' else 'failed'}"),
        ]


async def test_the_end_of_a_child_is_a_line_in_the_log_of_its_parent() -> None:
    async with JobTest.open(Letter, Mailing) as test:
        test.double(outside, "print_letter")
        await test.start("mailing.1", {"to": ["Anna"]})
        await test.advance(2 * HOUR)
        assert "the child letter~0.1 is finished" in await test.log("mailing.1")


async def test_a_parent_that_is_started_again_has_children_again() -> None:
    async with JobTest.open(Letter, Mailing) as test:
        printed = test.double(outside, "print_letter")
        for _ in range(2):
            await test.start("mailing.1", {"to": ["Anna"]})
            await test.advance(2 * HOUR)
            assert (await test.job("mailing.1")).result == ["a letter to Anna"]
        assert printed.calls == [("Anna",)], "an effect is for ever, also in a child with the same key"


async def test_a_child_is_dropped_a_month_after_its_end_and_its_effects_stay_done() -> None:
    async with JobTest.open(Letter, Mailing) as test:
        printed = test.double(outside, "print_letter")
        await test.start("mailing.1", {"to": ["Anna", "nobody"]})
        await test.start("letter~own.1", {"to": "Boris"})
        await test.advance(2 * HOUR)
        await test.advance(timedelta(days=29))
        assert await test.jobs.storage.drop_ended() == 0
        await test.advance(timedelta(days=2))
        watching = asyncio.create_task(Watchdog(test.store, test.jobs, test.worker.registry.schedules).run())
        await until(lambda: _has_jobs(test, 2))
        await cancel_and_wait(watching)
        names = ["mailing.1", "letter~own.1"]
        assert [job.id.name for job in (await test.jobs.list("default"))[0]] == names, "a user's own jobs stay"
        assert [job.id.name for job in await test.jobs.of_user("default", "1")] == names[::-1]
        assert (await test.jobs.storage.counts("default"))[JobState.FINISHED] == 2
        assert await violations_in(test.store) == []

        await test.start("mailing.1", {"to": ["Anna"]})
        await test.advance(2 * HOUR)
        assert (await test.job("mailing.1")).result == ["a letter to Anna"]
        assert printed.calls == [("Anna",), ("Boris",)], "an effect is for ever"
        await test.advance(timedelta(days=29))
        assert await test.jobs.storage.drop_ended() == 0, "it has ended again since"


async def _has_jobs(test: JobTest, count: int) -> bool:
    return len((await test.jobs.list("default"))[0]) == count


async def test_a_user_has_several_jobs_of_a_kind_with_keys() -> None:
    async with JobTest.open(Letter, Mailing) as test:
        for name in ("letter.7", "letter~a.7", "letter~b.7", "letter~a.8"):
            await test.start(name, {"to": name})
        found = [job.id.name for job in await test.jobs.of_user("default", "7")]
        assert found == ["letter.7", "letter~a.7", "letter~b.7"]
        await test.jobs.stop_all("default", "7", Actor.ADMIN, "deleted")
        assert (await test.job("letter~b.7")).state == "stopped"
        assert (await test.job("letter~a.8")).state == "running"


@pytest.mark.parametrize("name", ["letter~.7", "letter~a b.7", "letter~a", "~a.7", "letter~a~b.7"])
def test_what_is_no_name_of_a_job_is_refused(name: str) -> None:
    with pytest.raises(NotFound):
        JobId.parse("default", name)


class Trip(Job):
    name = "trip"
    schedule = Schedule()
    most_failures = 2

    async def run(self, iteration: Iteration) -> None:
        for part in ("flight", "hotel", "car"):
            if part == iteration.parameters["fails"]:
                raise RollBack("no car") if iteration.parameters["plainly"] else ConnectionError
            await iteration.effect(part, outside.book, part, idempotent_for=HOUR)
            iteration.compensate(part, outside.cancel, part, idempotent_for=HOUR)
            await iteration.sleep(timedelta(minutes=1))


@pytest.mark.parametrize("plainly", [True, False])
async def test_what_was_done_is_taken_back_in_reverse_order_whatever_crashes(plainly: bool) -> None:
    async def story(test: JobTest) -> None:
        booked, cancelled = test.double(outside, "book"), test.double(outside, "cancel")
        await test.start("trip.1", {"fails": "car", "plainly": plainly})
        await test.advance(HOUR)
        view = await test.job("trip.1")
        assert view.state == "failed"
        assert booked.calls == [("flight",), ("hotel",)]
        assert cancelled.calls == [("hotel",), ("flight",)]

    assert await try_every_crash(story, Trip) > 20


async def test_a_compensation_that_fails_is_tried_again() -> None:
    async with JobTest.open(Trip) as test:
        test.double(outside, "book")
        faults: list[Exception] = [ConnectionError()]
        cancelled = test.double(outside, "cancel", lambda part: faults.pop() if faults else None)
        await test.start("trip.1", {"fails": "hotel", "plainly": True})
        await test.advance(HOUR)
        assert (await test.job("trip.1")).state == "failed"
        assert cancelled.calls == [("flight",)]
