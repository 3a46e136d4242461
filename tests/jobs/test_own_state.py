"""The state of a job's own: from one iteration to the next, with each item, over crashes and changes of its class."""

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, ClassVar

import msgspec
import pytest

from core.errors import Invalid
from jobs import Actor, Finished, Iteration, Job, Schedule
from jobs.recording.own_state import StateClass
from jobs.testing import JobTest, run_story, try_every_crash

HOUR = timedelta(hours=1)


@dataclass
class Sent:
    """The number of messages on a day."""

    day: date = date.min
    today: int = 0
    ids: list[int] = field(default_factory=list)


class Mailer(Job):
    """Sends at most two a day."""

    name = "mailer"
    schedule = Schedule(8 * HOUR)
    state = Sent

    async def run(self, iteration: Iteration) -> None:
        sent: Sent = iteration.state
        if sent.day != iteration.now().date():
            sent.day, sent.today = iteration.now().date(), 0

        async def handle(item: int) -> None:
            await iteration.effect(
                f"send {item}", outside.send, item, exists=lambda: outside.send.has_taken_place(item)
            )
            iteration.state.today += 1
            iteration.state.ids.append(item)

        await iteration.each(range(10)[: len(sent.ids) + 2 - sent.today], handle, key=str)


class outside:  # noqa: N801 - stands for a module
    send: ClassVar[Any] = None


async def story(test: JobTest) -> None:
    send = test.double(outside, "send")
    await test.start("mailer.42")
    await test.advance(HOUR)
    assert send.calls == [(0,), (1,)]
    await test.advance(timedelta(days=1))
    view = await test.job("mailer.42")
    sent = msgspec.convert(view.own_state, Sent)
    assert send.calls == [(item,) for item in range(len(send.calls))]
    assert sent.ids == [item for (item,) in send.calls]
    assert len(send.calls) == 4
    assert sent.today == 2


async def test_a_daily_limit_is_kept_by_the_state_whatever_crashes() -> None:
    assert await try_every_crash(story, Mailer) > 20


class Counter(msgspec.Struct):
    items: int = 0
    runs: int = 0


class Counting(Job):
    name = "counting"
    schedule = Schedule(HOUR)
    state = Counter
    most_failures = 3
    fails: ClassVar[set[int]] = set()

    async def run(self, iteration: Iteration) -> None:
        iteration.state.runs += 1
        await iteration.each(iteration.parameters["items"], self.handle(iteration), key=str)
        if iteration.parameters.get("end"):
            raise Finished("enough")

    def handle(self, iteration: Iteration) -> Any:
        async def handle(item: int) -> None:
            if item in self.fails:
                self.fails.discard(item)
                raise ConnectionError
            iteration.state.items += 1

        return handle


async def test_a_repeated_iteration_counts_items_and_itself_once() -> None:
    Counting.fails = {3}
    async with JobTest.open(Counting) as test:
        await test.start("counting.1", {"items": [1, 2, 3, 4]})
        assert (await test.job("counting.1")).own_state == {"items": 2, "runs": 1}, "before it is tried again"
        await test.advance(timedelta(minutes=1))
        assert (await test.job("counting.1")).own_state == {"items": 4, "runs": 1}


async def test_the_state_stays_when_the_job_is_stopped_and_started_and_when_it_finishes() -> None:
    Counting.fails = {2}
    async with JobTest.open(Counting) as test:
        await test.start("counting.1", {"items": [1, 2]})
        await test.jobs.stop(test.id_of("counting.1"), by=Actor.USER)
        await test.start("counting.1", {"items": [1, 2], "end": True})
        await test.advance(timedelta(minutes=1))
        view = await test.job("counting.1")
        assert (view.state, view.own_state) == ("finished", {"items": 2, "runs": 2})
        await test.start("counting.1", {"items": []})
        assert (await test.job("counting.1")).own_state == {"items": 2, "runs": 3}


async def test_a_state_of_an_earlier_version_is_migrated_and_one_of_a_later_version_is_refused() -> None:
    class Later(Counting):
        state_version = 2

        @classmethod
        def migrate_state(cls, version: int, stored: Any) -> Any:
            return {"items": stored["items"] + 1000, "runs": version}

    async with JobTest.open(Counting) as test:
        await test.start("counting.1", {"items": [1]})
        test.worker.registry.kinds["counting"] = Later
        await test.advance(HOUR)
        assert (await test.job("counting.1")).own_state == {"items": 1001, "runs": 2}
        test.worker.registry.kinds["counting"] = Counting
        await test.advance(HOUR + timedelta(minutes=1))
        view = await test.job("counting.1")
        assert (view.state, view.own_state) == ("failed", {"items": 1001, "runs": 2})
        assert view.reason == "The state is of version 2, this process has version 1."


async def test_a_state_that_cannot_be_stored_or_read_is_refused() -> None:
    counter = StateClass(Counter, 2, Job.migrate_state)
    with pytest.raises(Invalid) as refusal:
        counter.dump({"x": object()})
    assert refusal.value.code == "STATE_NOT_JSON"
    with pytest.raises(Invalid) as refusal:
        counter.dump("x" * 2**16)
    assert refusal.value.code == "STATE_TOO_LARGE"
    stored = StateClass(Counter, 2, Job.migrate_state).dump(Counter())
    assert stored is not None
    with pytest.raises(Invalid) as refusal:
        counter.load(msgspec.structs.replace(stored, data={"items": "many"}))
    assert refusal.value.code == "STATE_MALFORMED"


async def test_a_story_that_fails_names_its_crash() -> None:
    async def fragile(test: JobTest) -> None:
        await test.start("counting.1", {"items": [1]})
        assert not any("goes on" in line for line in await test.log("counting.1"))

    with pytest.raises(AssertionError) as failure:
        await try_every_crash(fragile, Counting)
    assert failure.value.__notes__[0].startswith("with a crash at point 2 of ")
    await run_story(fragile, Counting)
