"""Calls of steps and effects: made again after errors, within limits, with a heartbeat, in branches."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from core.errors import Invalid
from jobs import Iteration, Job, NotDone, RetryPolicy, Schedule, UnitFailed
from jobs.testing import JobTest, try_every_crash

MINUTE = timedelta(minutes=1)
RETRY = RetryPolicy(attempts=3, first=MINUTE, on=(ConnectionError, TimeoutError))


class outside:  # noqa: N801 - stands for a module
    call: ClassVar[Any] = None


class Caller(Job):
    """Runs what a test writes, once."""

    name = "caller"
    schedule = Schedule()
    most_failures = 1
    body: ClassVar[Callable[[Iteration], Any]]

    async def run(self, iteration: Iteration) -> Any:
        return await type(self).body(iteration)


class Failing:
    """Raises these, one in a call, and then returns."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)

    def __call__(self, *arguments: Any) -> Any:
        return self.faults.pop(0) if self.faults else "done"


@pytest.mark.parametrize(
    ("faults", "state", "calls"),
    [
        ([ConnectionError(), TimeoutError()], "finished", 3),
        ([NotDone("busy")], "finished", 2),
        ([ConnectionError()] * 3, "failed", 3),
        ([ValueError()], "failed", 1),
        ([UnitFailed("closed")], "failed", 1),
    ],
)
async def test_a_call_is_made_again_after_the_errors_of_its_policy(
    faults: list[Exception], state: str, calls: int
) -> None:
    async def run(iteration: Iteration) -> None:
        await iteration.step("call", outside.call, retry=RETRY)

    Caller.body = run
    async with JobTest.open(Caller) as test:
        failing = Failing(*faults)
        test.double(outside, "call", failing)
        await test.start("caller.1")
        assert len(faults) - len(failing.faults) == 1, "the second attempt waits"
        await test.advance(3 * MINUTE)
        assert (await test.job("caller.1")).state == state
        assert len(faults) - len(failing.faults) + (state == "finished") == calls


async def returns_two() -> int:
    return 2


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda job: job.step("a", lambda: 2), "The call of step:a is not async: use `async def`"),
        (lambda job: job.effect("a", lambda: 2), "The call of effect:a is not async: use `async def`"),
        (lambda job: job.step("a", returns_two, timeout=5), "The timeout of a call must be a timedelta"),
        (lambda job: job.step("a", returns_two, heartbeat=5), "The heartbeat of a call must be a timedelta"),
        (
            lambda job: job.effect("a", returns_two, idempotent_for=5),
            "The idempotent_for of a call must be a timedelta",
        ),
        (lambda job: job.compensate("a", returns_two, idempotent_for=5), "The idempotent_for of a call must be a"),
        (lambda job: job.wait("a", timeout=5), "The timeout of a wait must be a timedelta"),
        (lambda iteration: iteration.sleep(time=5), "The time of a sleep must be a timedelta"),
        (lambda job: job.sleep_until("12:00"), "The end of a sleep must be a datetime"),
        (lambda _: RetryPolicy(first=5), "The first of a retry policy must be a timedelta"),  # type: ignore[arg-type]
        (lambda _: RetryPolicy(attempts="3"), "The attempts of a retry policy must be a whole"),  # type: ignore[arg-type]
        (lambda _: RetryPolicy(on=[OSError]), "The on of a retry policy must be a tuple"),  # type: ignore[arg-type]
    ],
)
async def test_a_value_of_another_type_is_named_before_anything_is_called(
    misuse: Callable[[Iteration], Any], message: str
) -> None:
    caught: list[str] = []

    async def run(iteration: Iteration) -> None:
        try:
            done = misuse(iteration)
            await done
        except TypeError as fault:
            caught.append(str(fault))

    Caller.body = run
    async with JobTest.open(Caller) as test:
        await test.start("caller.1")
    assert len(caught) == 1
    assert message in caught[0]


async def test_an_effect_is_repeated_with_the_key_that_its_author_has_given() -> None:
    keys: list[str] = []

    async def send(*, idempotency_key: str) -> str:
        keys.append(idempotency_key)
        if len(keys) < 3:
            raise ConnectionError
        return "sent"

    async def run(iteration: Iteration) -> None:
        day = timedelta(days=1)
        await iteration.effect("send", send, idempotent_for=day, idempotency_key="order 7", retry=RETRY)

    Caller.body = run
    async with JobTest.open(Caller) as test:
        await test.start("caller.1")
        await test.advance(3 * MINUTE)
        assert (await test.job("caller.1")).state == "finished"
    assert keys == ["order 7"] * 3


async def test_an_effect_whose_answer_is_lost_is_not_repeated_by_a_policy_alone() -> None:
    async def run(iteration: Iteration) -> None:
        await iteration.effect("send", outside.call, retry=RETRY)

    Caller.body = run
    async with JobTest.open(Caller) as test:
        test.double(outside, "call", Failing(ConnectionError()))
        await test.start("caller.1")
        await test.advance(3 * MINUTE)
        view = await test.job("caller.1")
        assert view.state == "failed"
        assert "whether 'send' took place is not known" in (view.reason or "")


async def test_a_call_has_a_limit_of_time_and_one_between_heartbeats() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    async def run(iteration: Iteration) -> list[str]:
        seen: list[str] = []
        short = timedelta(milliseconds=1)
        for timeout, heartbeat in ((short, None), (None, short)):
            try:
                await iteration.step("hang", hang, timeout=timeout, heartbeat=heartbeat)
            except TimeoutError:
                seen.append("timeout" if timeout else "heartbeat")
        assert seen == ["timeout", "heartbeat"]
        return seen

    Caller.body = run
    async with JobTest.open(Caller) as test:
        await test.start("caller.1")
        assert (await test.job("caller.1")).state == "finished"


async def test_a_long_call_goes_on_after_its_last_heartbeat() -> None:
    done: list[int] = []

    async def story(test: JobTest) -> None:
        done.clear()
        send = test.double(outside, "call")

        async def copy(iteration: Iteration) -> int:
            for number in range(iteration.progress or 0, 3):
                await send(number)
                await iteration.heartbeat(number + 1)
            return 3

        async def run(iteration: Iteration) -> None:
            assert await iteration.step("copy", copy, iteration, heartbeat=timedelta(hours=1)) == 3

        Caller.body = run
        await test.start("caller.1")
        await test.advance(MINUTE)
        assert (await test.job("caller.1")).state == "finished"
        numbers = [number for (number,) in send.calls]
        assert sorted(set(numbers)) == [0, 1, 2]
        assert len(numbers) <= 4, "at most the one in hand comes again"

    assert await try_every_crash(story, Caller) > 10


async def test_a_heartbeat_outside_of_a_call_is_refused() -> None:
    async def run(iteration: Iteration) -> None:
        with pytest.raises(Invalid) as refusal:
            await iteration.heartbeat()
        assert refusal.value.code == "HEARTBEAT_OUTSIDE"
        with pytest.raises(Invalid):
            assert iteration.progress

    Caller.body = run
    async with JobTest.open(Caller) as test:
        await test.start("caller.1")
        assert (await test.job("caller.1")).state == "finished"


async def test_branches_run_at_once_and_each_sleeps_and_waits_for_itself() -> None:
    async def story(test: JobTest) -> None:
        send = test.double(outside, "call")

        async def branch(iteration: Iteration, number: int) -> int:
            if number == 2:
                await iteration.wait("go")
            else:
                await iteration.sleep((2 - number) * MINUTE)
            await iteration.effect(f"send {number}", send, number, idempotent_for=timedelta(days=1))
            return number

        async def run(iteration: Iteration) -> None:
            assert await iteration.gather(*(branch(iteration, number) for number in range(3))) == [0, 1, 2]

        Caller.body = run
        await test.start("caller.1")
        assert (await test.job("caller.1")).waits_for == "the signal 'go'"
        await test.advance(MINUTE * 1.5)
        assert send.calls == [(1,)]
        await test.signal("caller.1", "go")
        await test.advance(MINUTE / 4)
        assert send.calls == [(1,), (2,)]
        await test.advance(MINUTE)
        assert send.calls == [(1,), (2,), (0,)]
        assert (await test.job("caller.1")).state == "finished"

    assert await try_every_crash(story, Caller) > 20


async def test_so_many_branches_run_at_once_and_all_end_before_an_error_is_raised() -> None:
    running, most, ended = 0, 0, list[int]()

    async def call(number: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        ended.append(number)
        if number == 0:
            raise ValueError("the first")

    async def run(iteration: Iteration) -> None:
        with pytest.raises(ValueError, match="the first"):
            await iteration.gather(*(iteration.step(f"call {n}", call, n) for n in range(6)), at_once=2)

    Caller.body = run
    async with JobTest.open(Caller) as test:
        await test.start("caller.1")
        assert (await test.job("caller.1")).state == "finished"
    assert (most, sorted(ended)) == (2, list(range(6)))
