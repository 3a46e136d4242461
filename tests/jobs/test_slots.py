"""Jobs that wait for a slot of a limit, or for the turn of a call (U-27)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, ClassVar

import pytest

from core.errors import SetupError
from core.jobs import Actor
from core.model.json_form import compact_json
from jobs import Iteration, Job, Limit, Registry, Schedule, Throttled
from jobs.testing import JobTest, try_every_crash
from tests.support.waiting import until

MINUTE = timedelta(minutes=1)


class outside:  # noqa: N801 - stands for a module
    send: ClassVar[Any] = None


class Single(Job):
    """Runs alone in its person's account."""

    name = "single"
    schedule = Schedule()
    limits: ClassVar[Sequence[Limit]] = (Limit("shop", key="parameters.account", concurrency=1),)
    begun: ClassVar[list[str]] = []
    gate: ClassVar[asyncio.Semaphore]

    async def run(self, iteration: Iteration) -> None:
        self.begun.append(iteration.user)
        await self.gate.acquire()


class Letters(Job):
    """Sends five letters, two a minute."""

    name = "letters"
    schedule = Schedule()
    limits = (Limit("post", rate=2),)

    async def run(self, iteration: Iteration) -> None:
        for number in range(5):
            await iteration.effect(
                f"letter {number}", outside.send, number, idempotent_for=timedelta(days=1), limit="post"
            )


@asynccontextmanager
async def running() -> AsyncIterator[JobTest]:
    """A worker that runs while the test does, and no job yet."""
    Single.begun, Single.gate = [], asyncio.Semaphore(0)
    async with JobTest.open(Single) as test:
        worker = asyncio.create_task(test.worker.run())
        try:
            yield test
        finally:
            test.worker.stop(timedelta(seconds=0))
            await worker


async def start(test: JobTest, *users: str) -> None:
    """Start jobs that wait for a slot, one after the other."""
    for user in users:
        await test.jobs.start(test.id_of(f"single.{user}"), {"account": "x"})
        await until(lambda: _waits(test, user))  # noqa: B023 - awaited in the loop


async def _waits(test: JobTest, user: str) -> bool:
    return (
        await test.job(f"single.{user}")
    ).reason == "waits for a slot: 1 at once, limit 'shop' of parameters.account x"


async def test_jobs_that_wait_say_so_and_go_on_in_their_order() -> None:
    async with running() as test:
        await test.jobs.start(test.id_of("single.first"), {"account": "x"})
        await until(lambda: Single.begun == ["first"])
        await start(test, "b", "a", "c")
        await test.jobs.start(test.id_of("single.other"), {"account": "y"})
        await until(lambda: Single.begun == ["first", "other"])
        for count in range(3, 6):
            Single.gate.release()
            Single.gate.release()
            await until(lambda: len(Single.begun) >= count)  # noqa: B023 - awaited in the loop
        assert Single.begun == ["first", "other", "b", "a", "c"]
        assert (await test.job("single.c")).reason is None
        Single.gate.release()


async def test_a_job_that_is_stopped_or_paused_while_it_waits_holds_up_no_other() -> None:
    async with running() as test:
        await test.jobs.start(test.id_of("single.first"), {"account": "x"})
        await until(lambda: Single.begun == ["first"])
        await start(test, "stopped", "paused", "last")
        await test.jobs.stop(test.id_of("single.stopped"), Actor.USER)
        await test.jobs.pause(test.id_of("single.paused"), Actor.USER)
        Single.gate.release()
        await until(lambda: Single.begun == ["first", "last"])
        await test.jobs.resume(test.id_of("single.paused"), Actor.USER)
        await until(lambda: _waits(test, "paused"))
        Single.gate.release()
        await until(lambda: Single.begun == ["first", "last", "paused"])
        Single.gate.release()


async def test_an_iteration_sleeps_until_the_turn_of_its_call_whatever_crashes() -> None:
    async def story(test: JobTest) -> None:
        sent = test.double(outside, "send")
        await test.start("letters.1")
        view = await test.job("letters.1")
        assert len(sent.calls) <= 2
        assert view.reason in ("waits for its turn: limit 'post'", None), "a crash has put it off"
        await test.advance(5 * MINUTE)
        assert sent.calls == [(number,) for number in range(5)]

    assert await try_every_crash(story, Letters) > 20


async def test_two_jobs_take_turns() -> None:
    async with JobTest.open(Letters) as test:
        times: list[datetime] = []
        test.double(outside, "send", lambda _: times.append(test.now))
        await test.start("letters.1")
        await test.start("letters.2")
        assert (await test.job("letters.2")).reason == "waits for its turn: limit 'post'"
        await test.advance(10 * MINUTE)
        assert len(times) == 10
        begun_late = timedelta(milliseconds=50)  # a call begins a moment after its turn
        assert min(later - earlier for earlier, later in zip(times, times[2:], strict=False)) >= MINUTE - begun_late
        assert times[-1] - times[0] < 5 * MINUTE, "no turn is lost"


async def test_a_refusal_of_the_service_makes_all_jobs_of_the_account_wait() -> None:
    async with JobTest.open(Letters) as test:
        refusals = [Throttled(timedelta(minutes=10))]
        sent = test.double(outside, "send", lambda _: refusals.pop() if refusals else None)
        for job in ("letters.1", "letters.2"):
            await test.start(job)
            assert (await test.job(job)).reason == "waits for its turn: limit 'post'"
        await test.advance(9 * MINUTE)
        assert sent.calls == []
        await test.advance(10 * MINUTE)
        assert len(sent.calls) == 10


async def test_a_call_names_a_limit_of_its_class() -> None:
    class Unknown(Job):
        name = "unknown"
        schedule = Schedule()
        most_failures = 1

        async def run(self, iteration: Iteration) -> None:
            await iteration.step("send", outside.send, limit="post")

    async with JobTest.open(Unknown) as test:
        await test.start("unknown.1")
        reason = (await test.job("unknown.1")).reason
    assert reason == "The job has no limit 'post' with a rate; it has: none."


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ([Limit("shop")], "the limit 'shop' needs `concurrency`, or a `name` and a `rate`"),
        ([Limit(rate=1)], "the limit '' needs `concurrency`"),
        ([Limit(concurrency=0)], "`concurrency` of the limit '' is a number from 1; it is 0"),
        ([Limit("shop", rate=0)], "`rate` of the limit 'shop' is from 1 to 10000; it is 0"),
        ([Limit("shop", rate=1, per=timedelta(0))], "`per` of the limit 'shop' is at least a millisecond"),
        (
            [Limit(concurrency=1, key="account")],
            "`key` of the limit '' is `user` or `parameters.NAME`; it is 'account'",
        ),
        ([Limit(concurrency=1, key="parameters.")], "`key` of the limit '' is `user` or `parameters.NAME`"),
        ([Limit(concurrency=1), Limit(concurrency=2)], "two limits of one job have the name '' and the same key"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused(limits: list[Limit], message: str) -> None:
    class Never(Single):
        pass

    Never.limits = limits
    with pytest.raises(SetupError, match=message):
        Registry([Never])


async def test_a_job_that_moves_to_the_queue_of_another_limit_keeps_its_place_in_the_order() -> None:
    async with JobTest.open(Single) as test:

        async def take(job: str, *limits: str) -> str:
            wanted = compact_json([[limit, 1] for limit in limits])
            await test.advance(timedelta(seconds=1))
            words = (job, f"1 worker 0.{job}", f"0.{job}", 60_000, wanted)
            return str((await test.store.run("take_slots", 0, *words))[0])

        assert [await take("a", "x"), await take("b", "y")] == ["", ""]
        assert [await take("first", "x", "y"), await take("second", "y")] == ["x", "y"]
        await test.advance(timedelta(seconds=1))
        assert await test.store.run("release_slots", 0, "a", "1 worker 0.a", 60_000) == [], "it waits for y now"
        assert await test.store.run("release_slots", 0, "b", "1 worker 0.b", 60_000) == [["0.first", "first"]]


async def test_a_job_gets_its_slot_again_if_the_process_that_was_to_wake_it_has_died() -> None:
    """A task that never takes its slots, for example one that was cancelled, gets them a few times only."""
    async with JobTest.open(Single) as test:

        async def take(job: str, number: int) -> list[str]:
            words = (job, f"{number} worker 0.{job}", f"0.{job}", 1000, '[["limit:x",1]]')
            return list(await test.store.run("take_slots", 0, *words))

        assert await take("a", 1) == [""]
        assert await take("b", 2) == ["limit:x"]
        assert await test.store.run("release_slots", 0, "a", "1 worker 0.a", 1000) == [["0.b", "b"]]
        woken: list[list[str]] = []
        for _ in range(15):
            await test.advance(timedelta(seconds=2))
            woken += (await test.store.run("extend_slots", 0, 1000))[1:]
        assert woken == [["0.b", "b"]] * 10
        assert await take("c", 3) == [""]
