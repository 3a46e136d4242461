"""Sleeping, waiting for signals, and jobs that run by cron, once, or from a time on."""

import asyncio
from datetime import datetime, timedelta
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import pytest

from core.errors import Conflict, Invalid, NotFound
from core.jobs import Actor, JobId
from core.jobs.signals import LARGEST_DATA, MOST_SIGNALS
from core.jobs.storage import tube_of
from core.jobs.views import Wanted
from core.model.clock import from_ms, to_ms
from core.queue import Queue, TaskFilter
from jobs import Iteration, Job, Schedule
from jobs.testing import JobTest, try_every_crash

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


class outside:  # noqa: N801 - stands for a module
    send: ClassVar[Any] = None


class Order(Job):
    """Waits for an approval, a day long; sends a reminder before, and the goods an hour after it."""

    name = "order"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> Any:
        await iteration.log("waits")
        try:
            approval = await iteration.wait("approved", timeout=DAY, returns=dict[str, str])
        except TimeoutError:
            await iteration.log("too late")
            return None
        await iteration.sleep(HOUR)
        await iteration.effect("send", outside.send, approval["by"], idempotent_for=DAY)
        return approval


async def approved(test: JobTest) -> None:
    send = test.double(outside, "send")
    await test.start("order.1")
    await test.signal("order.1", "other")
    await test.advance(HOUR)
    assert (await test.job("order.1")).waits_for == "the signal 'approved'"
    await test.signal("order.1", "approved", {"by": "Anna"})
    await test.advance(HOUR / 2)
    assert send.calls == []
    await test.advance(HOUR)
    assert send.calls == [("Anna",)]
    assert (await test.job("order.1")).state == "finished"
    assert [line for line in await test.log("order.1") if line == "waits"] == ["waits"]


async def test_a_job_waits_for_a_signal_and_sleeps_whatever_crashes() -> None:
    assert await try_every_crash(approved, Order) > 15


async def late(test: JobTest) -> None:
    send = test.double(outside, "send")
    await test.start("order.1")
    await test.advance(DAY + timedelta(minutes=1))
    assert send.calls == []
    assert [line for line in await test.log("order.1") if line in ("waits", "too late")] == ["waits", "too late"]
    with pytest.raises(Conflict) as refusal:
        await test.signal("order.1", "approved")
    assert refusal.value.code == "JOB_IN_OTHER_STATE"


async def test_a_signal_that_does_not_come_in_time_is_a_timeout_once_and_for_all() -> None:
    await try_every_crash(late, Order)


class Post(Job):
    """Waits for letters without a limit."""

    name = "post"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> None:
        while True:
            await iteration.wait("letter")


async def test_a_job_has_one_task_however_often_it_was_woken_paused_and_resumed() -> None:
    async def story(test: JobTest) -> None:
        post = test.id_of("post.1")
        of_job = TaskFilter(tube=tube_of("post"), tenant=post.tenant)

        async def tasks() -> int:
            return len(await Queue(test.store).inspector.select(of_job))

        await test.start("post.1")
        await test.run()
        for _ in range(3):
            await test.signal("post.1", "letter")
            assert await tasks() == 1
            await test.run()
            await test.jobs.pause(post, Actor.USER, "a break")
            assert await tasks() == 0
            await test.jobs.resume(post, Actor.USER)
            assert await tasks() == 1
            await test.run()
            assert (await tasks(), (await test.job("post.1")).waits_for) == (1, "the signal 'letter'")
        await test.jobs.stop(post, Actor.USER)
        assert await tasks() == 0

    await try_every_crash(story, Post)


class Inbox(Job):
    """Takes two messages in each iteration, and handles items that wait themselves."""

    name = "inbox"
    schedule = Schedule(HOUR)

    async def run(self, iteration: Iteration) -> None:
        for _ in range(2):
            await iteration.log(f"got {await iteration.wait('message')}")
        await iteration.each([1, 2], self.handle(iteration), key=lambda item: f"{iteration.number} {item}")

    def handle(self, iteration: Iteration) -> Any:
        async def handle(item: int) -> None:
            await iteration.sleep(timedelta(minutes=1))
            await iteration.log(f"item {item}")

        return handle


async def test_signals_are_taken_in_their_order_and_items_sleep_each_for_itself() -> None:
    async def story(test: JobTest) -> None:
        await test.jobs.start(test.id_of("inbox.1"))
        for number in range(3):
            await test.jobs.signal(test.id_of("inbox.1"), "message", number, signal_id=str(number))
        await test.jobs.signal(test.id_of("inbox.1"), "message", 1, signal_id="1")  # a repetition
        await test.advance(timedelta(minutes=4))
        own = [line for line in await test.log("inbox.1") if line.startswith(("got", "item"))]
        assert own == ["got 0", "got 1", "item 1", "item 2"]
        await test.advance(2 * HOUR)
        assert "got 2" in await test.log("inbox.1")

    await try_every_crash(story, Inbox)


async def test_a_paused_job_gets_its_signals_when_it_is_resumed() -> None:
    async with JobTest.open(Order) as test:
        send, job_id = test.double(outside, "send"), test.id_of("order.1")
        await test.start("order.1")
        await test.jobs.pause(job_id, Actor.USER)
        await test.signal("order.1", "approved", {"by": "Boris"})
        await test.advance(2 * HOUR)
        assert send.calls == []
        await test.jobs.resume(job_id, Actor.USER)
        await test.advance(2 * HOUR)
        assert send.calls == [("Boris",)]


async def test_a_signal_at_the_moment_of_falling_asleep_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async with JobTest.open(Order) as test:
        test.double(outside, "send")
        storage, sent = test.worker.jobs.storage, list[str]()
        fall_asleep = storage.end_iteration

        async def signal_first(*arguments: Any, **options: Any) -> str:
            if not sent:
                sent.append("approved")
                await test.jobs.signal(test.id_of("order.1"), "approved", {"by": "Anna"})
            return await fall_asleep(*arguments, **options)

        monkeypatch.setattr(storage, "end_iteration", signal_first)
        await test.start("order.1")
        assert (await test.job("order.1")).waits_for == "a time", "it sleeps for an hour after the approval"


async def test_a_signal_that_comes_after_another_branch_has_taken_one_wakes_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Two(Job):
        name = "two"
        schedule = Schedule()

        async def run(self, iteration: Iteration) -> None:
            await iteration.wait("go")
            await iteration.gather(iteration.wait("z"), iteration.wait("x"))
            await iteration.wait("y")

    async with JobTest.open(Two) as test:
        await test.start("two.1")
        storage = test.worker.jobs.storage
        end = storage.end_iteration

        async def signal_first(*arguments: Any, **options: Any) -> str:
            monkeypatch.undo()
            await test.jobs.signal(test.id_of("two.1"), "z", ',"data":')
            return await end(*arguments, **options)

        await test.signal("two.1", "x")
        monkeypatch.setattr(storage, "end_iteration", signal_first)
        await test.signal("two.1", "go")
        assert (await test.job("two.1")).waits_for == "the signal 'y'"


async def test_two_branches_that_wait_for_one_name_take_two_signals() -> None:
    taken: list[Any] = []

    class Two(Job):
        name = "two"
        schedule = Schedule()

        async def run(self, iteration: Iteration) -> None:
            await iteration.wait("go")
            taken.extend(await iteration.gather(iteration.wait("x"), iteration.wait("x")))

    async with JobTest.open(Two) as test:
        await test.start("two.1")
        await test.signal("two.1", "x", 1)
        await test.signal("two.1", "go")
        assert taken == []
        await test.signal("two.1", "x", 2)
        assert sorted(taken) == [1, 2]


async def test_what_no_signal_can_be_is_refused() -> None:
    async with JobTest.open(Order) as test:
        await test.start("order.1")
        job_id = test.id_of("order.1")
        for name, data, code in (
            ("", None, "SIGNAL_MALFORMED"),
            ("a\tb", None, "SIGNAL_MALFORMED"),
            ("approved", object(), "SIGNAL_MALFORMED"),
            ("approved", "x" * LARGEST_DATA, "SIGNAL_TOO_LARGE"),
        ):
            with pytest.raises(Invalid) as refusal:
                await test.jobs.signal(job_id, name, data)
            assert refusal.value.code == code
        with pytest.raises(NotFound):
            await test.jobs.signal(JobId("default", "order", "2"), "approved")
        await asyncio.gather(*(test.jobs.signal(job_id, "other") for _ in range(MOST_SIGNALS)))
        with pytest.raises(Conflict) as full:
            await test.jobs.signal(job_id, "other")
        assert full.value.code == "TOO_MANY_SIGNALS"


async def test_a_signal_that_was_refused_because_too_many_wait_is_stored_when_it_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("core.jobs.signals.MOST_SIGNALS", 2)
    async with JobTest.open(Order) as test:
        await test.start("order.1")
        job_id = test.id_of("order.1")
        for name in ("first", "second"):
            await test.jobs.signal(job_id, name)
        with pytest.raises(Conflict):
            await test.jobs.signal(job_id, "third", signal_id="3")
        (signals,) = await test.store.command("KEYS", "job-signals:*")
        await test.store.command("LPOP", signals)
        for _ in range(2):
            await test.jobs.signal(job_id, "third", signal_id="3")
        assert await test.store.command("LLEN", signals) == 2


class Report(Job):
    name = "report"
    schedule = Schedule(cron="0 9 * * *")

    async def run(self, iteration: Iteration) -> None:
        await iteration.log(f"{iteration.now():%H:%M %Z}")


async def test_a_job_by_cron_runs_on_the_wall_clock_of_its_user() -> None:
    async with JobTest.open(Report) as test:
        await test.start("report.1", timezone="Asia/Tokyo")
        await test.advance(3 * DAY)
        assert [line for line in await test.log("report.1") if "JST" in line] == ["09:00 JST"] * 3


async def test_a_job_begins_at_the_time_that_its_start_names() -> None:
    async with JobTest.open(Report) as test:
        at = test.now + 90 * DAY
        await test.start("report.1", at=at)
        assert (await test.job("report.1")).next_run == from_ms(to_ms(at))


async def test_zone_and_schedule_are_changed_while_a_job_runs() -> None:
    async with JobTest.open(Report) as test:
        await test.start("report.1")
        await test.advance(DAY)
        job_id, before = test.id_of("report.1"), len(await test.log("report.1"))
        await test.jobs.change(job_id, {}, Actor.USER, schedule=Schedule(HOUR), timezone="Asia/Tokyo")
        await test.advance(3 * HOUR + timedelta(minutes=1))
        lines = (await test.log("report.1"))[before:]
        assert lines[0] == "time zone, schedule: changed by user"
        assert len(lines) in (4, 5)
        assert all(line.endswith("JST") for line in lines[1:])
        await test.jobs.stop(job_id, Actor.USER)
        started = await test.jobs.start(job_id)
        assert started.record.schedule is not None
        assert started.record.schedule.schedule == Schedule(HOUR), "as before"


async def test_a_changed_zone_alone_moves_the_next_iteration() -> None:
    async with JobTest.open(Report) as test:
        await test.start("report.1")
        await test.advance(DAY)
        await test.jobs.change(test.id_of("report.1"), {}, Actor.USER, timezone="Asia/Tokyo")
        due = (await test.job("report.1")).next_run
        assert due is not None
        assert f"{due.astimezone(ZoneInfo('Asia/Tokyo')):%H:%M}" == "09:00"


class Hourly(Job):
    """Waits beyond its next two iterations."""

    name = "hourly"
    schedule = Schedule(HOUR)

    async def run(self, iteration: Iteration) -> None:
        await iteration.sleep(2.5 * HOUR)


async def test_an_iteration_that_sleeps_past_the_next_one_lets_it_begin_at_once() -> None:
    async with JobTest.open(Hourly) as test:
        began = test.now
        await test.start("hourly.1")
        await test.advance(2.4 * HOUR)
        assert (await hours_of(test, began))[0] == 0
        await test.advance(0.2 * HOUR)
        assert await hours_of(test, began) == (2.5, 5)


async def hours_of(test: JobTest, began: datetime) -> tuple[float, float]:
    """Return after how many hours the iteration began, and after how many it goes on."""
    view = await test.job("hourly.1")
    assert view.last_run is not None
    assert view.next_run is not None
    return round((view.last_run - began) / HOUR, 1), round((view.next_run - began) / HOUR, 1)


async def test_jobs_are_found_by_what_they_work_with_and_the_steps_of_one_that_waits_are_listed() -> None:
    class Searching(Job):
        name = "searching"
        schedule = Schedule()
        state = dict

        async def run(self, iteration: Iteration) -> None:
            iteration.state["seen"] = await iteration.step("search", _value, iteration.parameters["query"] + "s")
            await iteration.wait("go")

    async with JobTest.open(Searching) as test:
        for user, query in enumerate(("Teacher", "cook")):
            await test.start(f"searching.{user}", {"query": query})
        for text, found in (("TEACHERS", ["searching.0"]), ("cook", ["searching.1"]), ("pilot", [])):
            page, _ = await test.jobs.list("default", Wanted(text=text))
            assert [job.id.name for job in page] == found
        units, _ = await test.jobs.units.page(test.id_of("searching.1"))
        assert [(unit.id, unit.result) for unit in units] == [("step:search", "cooks")]


async def _value(value: str) -> str:
    return value
