"""What the live log and the state of a job say of failures, of skipped items and of repetitions, and what they hide."""

import json
import logging

import pytest

from core.errors import FunctionFault
from core.jobs import Actor, JobState
from core.queue import Queue
from jobs import Iteration, Unclear, UnitFailed
from jobs.endings import reason_for_user
from tests.jobs.conftest import ANNA, HOUR, Playground
from tests.jobs.fake_service import FakeService
from tests.support.waiting import until

SECRET = "https://service.example/?access_token=hunter2"


async def lines(playground: Playground) -> list[str]:
    return [line.text for line in await playground.jobs.log.last(ANNA)]


async def test_secrets_of_an_exception_do_not_reach_the_user(
    playground: Playground, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def run(iteration: Iteration) -> None:
        raise ConnectionError(SECRET)

    playground.run, playground.most_failures = run, 2
    playground.start_worker()
    await playground.jobs.start(ANNA)

    async def failed_once() -> bool:
        """The log has it, and the attempt has ended: the clock is advanced only then, or its lease would run out."""
        is_logged = any("failure 1 of 2" in line for line in await lines(playground))
        return is_logged and (await Queue(playground.stack.store).inspector.stats()).taken == 0

    await until(failed_once)
    playground.stack.advance_clock(HOUR)
    failed = await playground.in_state(JobState.FAILED)
    shown = [failed.record.reason, *await lines(playground)]
    assert not any("hunter2" in line for line in shown)
    assert [line for line in shown if "ConnectionError in conftest.py, line " in line]
    assert sum("ConnectionError" in line for line in shown) == 3, "the reason, and each failure in the log"
    assert SECRET in caplog.text, "the operator sees it"


def test_an_error_of_the_store_is_shown_without_its_text() -> None:
    assert reason_for_user(FunctionFault("WRONGTYPE at lua/jobs/functions/save_job.lua:12")) == "FunctionFault"


def test_the_reason_names_the_last_line_of_the_job_and_not_that_of_a_library() -> None:
    with pytest.raises(ValueError, match="Expecting") as fault:
        json.loads("{")
    line = fault.traceback[0].lineno + 1
    assert str(reason_for_user(fault.value)) == f"JSONDecodeError in test_reasons.py, line {line}"


async def test_each_item_that_fails_stands_in_the_log_with_its_reason(playground: Playground) -> None:
    async def apply(item: str) -> None:
        if item == "closed":
            raise UnitFailed("the vacancy was closed")
        if item == "unclear":
            raise Unclear("no answer")

    async def run(iteration: Iteration) -> None:
        await iteration.each(["open", "closed", "unclear"], apply, key=str)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert (await lines(playground))[1:] == [
        "closed failed: the vacancy was closed",
        "unclear may or may not have been done: no answer",
    ]


async def test_items_that_are_skipped_are_counted_in_the_log(playground: Playground) -> None:
    offers = [1, 2]

    async def apply(item: int) -> None:
        """Nothing to do."""

    async def run(iteration: Iteration) -> None:
        await iteration.each(offers, apply, key=str)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert (await lines(playground))[1:] == []
    offers.append(3)
    playground.stack.advance_clock(HOUR)
    await playground.iterations(2)
    assert (await lines(playground))[1:] == ["2 of 3 items were handled before, and skipped"]


async def test_the_log_says_where_an_iteration_begins_again(playground: Playground) -> None:
    service = FakeService()
    service.gate.clear()

    async def run(iteration: Iteration) -> None:
        await iteration.log("looking")
        await service.hunt(iteration)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await until(lambda: service.waiting == 1)
    await playground.jobs.pause(ANNA, Actor.USER)
    service.gate.set()
    await until(lambda: service.applied == [1])
    await playground.jobs.resume(ANNA, Actor.USER)
    await playground.iterations(1)
    assert [line for line in await lines(playground) if "by user" not in line] == [
        "looking",
        "iteration 1 goes on",
        "1 of 3 items were handled before, and skipped",
    ]
