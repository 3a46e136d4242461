"""A failing iteration is tried again with growing pauses; then the next one follows, or the end of the job (U-32)."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from core.jobs import DailyWindow, JobRecord, JobState
from core.model.clock import to_ms
from jobs import Iteration, Job, RetryPolicy, RollBack, Schedule, Unclear
from jobs.endings import BACKOFF, LEAST, MOST, AfterFailure, failure_of
from jobs.testing import JobTest

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)
RETRY = RetryPolicy(attempts=3, first=timedelta(seconds=1), on=(ConnectionError,))
OPEN = DailyWindow(time(9), time(12, 0, 30))


class outside:  # noqa: N801 - stands for a module
    call: ClassVar[Any] = None
    cancel: ClassVar[Any] = None


class Once(Job):
    """Runs what a test writes."""

    name = "once"
    schedule = Schedule()
    body: ClassVar[Callable[[Iteration], Any]]

    async def run(self, iteration: Iteration) -> Any:
        return await type(self).body(iteration)


class Often(Once):
    name = "often"
    schedule = Schedule(MINUTE)


def kind_with(schedule: Schedule, most: int | None = None) -> type[Job]:
    return type("Kind", (Once,), {"schedule": schedule, "most_failures": most})


FAULT = ConnectionError()


@pytest.mark.parametrize(
    ("schedule", "most", "before", "fault", "verdict"),
    [
        (Schedule(), None, 0, FAULT, AfterFailure.AGAIN),
        (Schedule(), None, MOST - 2, FAULT, AfterFailure.AGAIN),
        (Schedule(), None, MOST - 1, FAULT, AfterFailure.FAILED),
        (Schedule(), 3, 2, FAULT, AfterFailure.FAILED),
        (Schedule(MINUTE), None, LEAST - 2, FAULT, AfterFailure.AGAIN),
        (Schedule(MINUTE), None, 6, FAULT, AfterFailure.NEXT),
        (Schedule(MINUTE), None, 10_000, FAULT, AfterFailure.NEXT),
        (Schedule(MINUTE), 3, 2, FAULT, AfterFailure.FAILED),
        (Schedule(DAY), None, 10_000, FAULT, AfterFailure.AGAIN),
        (Schedule(DAY, OPEN), None, LEAST, FAULT, AfterFailure.AGAIN),
        (Schedule(cron="* * * * *"), None, 6, FAULT, AfterFailure.NEXT),
        (Schedule(cron="0 9 * * *"), None, 10_000, FAULT, AfterFailure.AGAIN),
        (Schedule(MINUTE), None, 0, RollBack("no"), AfterFailure.FAILED),
        (Schedule(MINUTE), None, LEAST - 1, Unclear("lost"), AfterFailure.FAILED),
        (Schedule(), None, LEAST - 1, Unclear("lost"), AfterFailure.FAILED),
    ],
)
def test_what_follows_after_a_failure(
    schedule: Schedule, most: int | None, before: int, fault: Exception, verdict: AfterFailure
) -> None:
    record = JobRecord(JobState.RUNNING, anchor=to_ms(NOON), last_run=to_ms(NOON), failures=before)
    failure = failure_of(kind_with(schedule, most), record, fault, NOON)
    assert (failure.verdict, failure.number) == (verdict, before + 1)
    if schedule.window:
        assert schedule.window.contains(failure.at.time())


def test_a_job_without_a_period_goes_on_trying_for_most_of_a_day() -> None:
    shortest = sum((BACKOFF.pause(number, 0.0) for number in range(1, MOST)), timedelta(0))
    longest = sum((BACKOFF.pause(number, 1.0) for number in range(1, MOST)), timedelta(0))
    assert 12 * HOUR < shortest < longest < 2 * DAY


class Outage:
    """A service that is down. `calls`: when it was called."""

    def __init__(self, test: JobTest) -> None:
        self._test = test
        self.is_over = False
        self.calls: list[datetime] = []

    def __call__(self, *_: Any) -> str:
        self.calls.append(self._test.now)
        if not self.is_over:
            raise ConnectionError("down")
        return "there"


@pytest.mark.parametrize("policy", [None, RETRY])
async def test_a_job_without_a_period_counts_its_failures_over_the_pauses_of_its_steps(
    policy: RetryPolicy | None,
) -> None:
    async def run(iteration: Iteration) -> None:
        await iteration.step("call", outside.call, retry=policy)

    Once.body = run
    async with JobTest.open(Once) as test:
        outage = Outage(test)
        test.double(outside, "call", outage)
        await test.start("once.1")
        await test.advance(HOUR)
        view = await test.job("once.1")
        assert view.state == "running"
        assert "ConnectionError" in (view.reason or "")
        assert (view.next_run or test.now) > test.now
        await test.advance(2 * DAY)
        assert (await test.job("once.1")).state == "failed"
        log = [line.split(" s: ")[0] for line in await test.log("once.1") if line.startswith("failure")]
        assert [line.split(",")[0] for line in log] == [f"failure {n} of {MOST}" for n in range(1, MOST)]
        assert len(outage.calls) == MOST * (policy.attempts if policy else 1)
        pauses = [later - earlier for earlier, later in pairwise(outage.calls)]
        assert HOUR / 2 <= max(pauses) <= HOUR + MINUTE


@pytest.mark.parametrize("policy", [None, RETRY])
async def test_a_job_with_a_period_outlives_a_night_without_its_service(policy: RetryPolicy | None) -> None:
    async def run(iteration: Iteration) -> None:
        await iteration.step("call", outside.call, retry=policy)

    Often.body = run
    async with JobTest.open(Often) as test:
        outage = Outage(test)
        test.double(outside, "call", outage)
        await test.start("often.1")
        await test.advance(3 * HOUR)
        view = await test.job("often.1")
        assert view.state == "running"
        assert 170 <= view.iterations <= 181
        assert "ConnectionError" in (view.reason or "")
        line = next(line for line in reversed(await test.log("often.1")) if "is given up" in line)
        assert "; the next one is due on 2030-01-07 at 12:0" in line
        assert len(outage.calls) <= 200 * (policy.attempts if policy else 1)
        outage.is_over = True
        before = view.iterations
        await test.advance(10 * MINUTE)
        view = await test.job("often.1")
        assert (view.state, view.reason) == ("running", None)
        assert view.iterations >= before + 9
        outage.is_over = False
        await test.advance(2 * MINUTE)
        assert any(line.startswith("failure 1,") for line in (await test.log("often.1"))[-60:]), "counted from 1 again"


@pytest.mark.parametrize("period", [HOUR, 7 * DAY])
async def test_the_user_of_a_job_that_keeps_failing_is_notified_after_a_day_once_until_it_works_again(
    period: timedelta, caplog: pytest.LogCaptureFixture
) -> None:
    """With an hour iterations are given up, with a week one is tried again. No notice was sent for weeks (39.27)."""

    async def run(iteration: Iteration) -> None:
        await iteration.step("call", outside.call)

    caplog.set_level("INFO", "jobs.notices")
    kind = type("Regular", (Once,), {"name": "regular", "schedule": Schedule(period), "body": run})
    async with JobTest.open(kind) as test:
        outage = Outage(test)
        test.double(outside, "call", outage)
        await test.start("regular.1")
        for outages in (1, 2):
            outage.is_over = False
            await test.advance(23 * HOUR)
            assert notices_in(caplog) == ["keeps_failing"] * (outages - 1)
            await test.advance(period + 2 * DAY)
            assert notices_in(caplog) == ["keeps_failing"] * outages
            outage.is_over = True
            await test.advance(max(period, 2 * HOUR))
            assert (await test.job("regular.1")).reason is None


def notices_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the notices that reached no user, because this one is not in the directory."""
    text = "job regular.1: no user can be notified that it is "
    return [line.removeprefix(text) for line in caplog.messages if line.startswith(text)]


async def test_failures_far_apart_are_not_in_a_row() -> None:
    """Between them the iteration has stored results, and slept."""

    async def run(iteration: Iteration) -> None:
        for day in range(10):
            await iteration.step(f"call {day}", outside.call)
            await iteration.sleep(DAY)

    kind = type("Daily", (Once,), {"name": "daily", "most_failures": 2, "body": run})
    async with JobTest.open(kind) as test:
        answers = [ConnectionError(), "there"] * 10

        def call(*_: Any) -> Any:
            return answers.pop(0)

        test.double(outside, "call", call)
        await test.start("daily.1")
        await test.advance(11 * DAY)
        assert ((await test.job("daily.1")).reason, len(answers)) == (None, 0)


async def test_a_heartbeat_is_no_progress_of_the_job() -> None:
    async def call() -> None:
        await Once.current.heartbeat(1)  # type: ignore[attr-defined]
        raise ConnectionError

    async def run(iteration: Iteration) -> None:
        Once.current = iteration  # type: ignore[attr-defined]
        await iteration.step("call", call, retry=RETRY, heartbeat=MINUTE)

    kind = type("Beating", (Once,), {"name": "beating", "most_failures": 3, "body": run})
    async with JobTest.open(kind) as test:
        await test.start("beating.1")
        await test.advance(HOUR)
        assert (await test.job("beating.1")).state == "failed"


@pytest.mark.parametrize("is_lasting", [False, True])
async def test_an_iteration_is_given_up_only_when_it_has_taken_back_what_it_has_done(is_lasting: bool) -> None:
    async def run(iteration: Iteration) -> None:
        await iteration.effect("book", outside.call, per_iteration=True)
        iteration.compensate("book", outside.cancel)
        raise ConnectionError

    Often.body = run
    async with JobTest.open(Often) as test:
        test.double(outside, "call")
        cancel = test.double(outside, "cancel", RollBack("no") if is_lasting else None)
        await test.start("often.1")
        await test.advance(5 * MINUTE)
        view = await test.job("often.1")
        assert view.state == ("failed" if is_lasting else "running")
        assert (view.iterations > 1) != is_lasting
        if not is_lasting:
            assert len(cancel.calls) == view.iterations
