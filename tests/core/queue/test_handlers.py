"""What handlers return, raise and save, how they are notified, and what becomes of their tasks."""

import asyncio
import time
from datetime import timedelta

import pytest

from core.model.clock import Backoff
from core.model.states import TaskState
from core.queue import AlreadySettled, Attempt, Bury, Done, Failed, NewTask, Result, Retry, Tube
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack
from tests.support.waiting import until
from tests.support.workshop import QUICK, SOON, Workshop, returning


@on_both_servers
@pytest.mark.parametrize(
    ("result", "state"), [(None, "done"), (Done("x"), "done"), ("x", "done"), (Failed("x"), "failed")]
)
async def test_the_result_of_a_handler_is_the_end_of_its_task(workshop: Workshop, result: Result, state: str) -> None:
    await workshop.client.tubes.create(Tube("t", keep=HOUR / 2))
    await workshop.start_worker(returning(result))
    end = await workshop.client.wait(await workshop.client.put("t", ""), SOON)
    assert (end.state, end.answer) == (TaskState(state), "" if result is None else "x")


async def test_a_task_whose_handler_raises_is_retried_with_backoff_and_buried_in_the_end(
    stack: Stack, workshop: Workshop
) -> None:
    await workshop.client.tubes.create(Tube("t", attempts=3, backoff=QUICK))
    attempts: list[int] = []

    async def failing(attempt: Attempt) -> None:
        attempts.append(attempt.task.attempts)
        raise ValueError

    await workshop.start_worker(failing)
    task_id = await workshop.client.put("t", "")
    await until(lambda: _is(stack, task_id, "buried"))
    assert attempts == [1, 2, 3]


async def test_a_handler_that_settles_its_task_itself_is_not_cancelled_when_its_lease_ends(workshop: Workshop) -> None:
    """The heartbeat finds that the task has ended before the handler returns."""
    ended: list[str] = []

    async def settling(attempt: Attempt) -> Result:
        attempt.settles = True
        await workshop.client.queue.settle(attempt.task)
        await until(lambda: not attempt.holds_lease())
        for _ in range(10):
            await asyncio.sleep(0)
        ended.append(attempt.body)
        return AlreadySettled()

    await workshop.start_worker(settling, lease=timedelta(seconds=1))
    await workshop.client.put_many("t", [NewTask("first", lane="lane"), NewTask("second", lane="lane")])
    # The second begins when the first is settled: either may see the end of its lease first. On a machine that
    # stood still for the lease a task is attempted again.
    await until(lambda: set(ended) == {"first", "second"})


async def _is(stack: Stack, task_id: str, state: str) -> bool:
    return await stack.state(task_id) == state


async def test_a_handler_may_return_a_retry_with_a_delay_and_a_new_body(workshop: Workshop) -> None:
    async def changing(attempt: Attempt) -> Result:
        return (
            Retry(timedelta(milliseconds=20), body="second")
            if attempt.body == "first"
            else f"{attempt.body} {attempt.checkpoint}"
        )

    await workshop.start_worker(changing)
    assert await workshop.client.call("t", "first", SOON) == "second "


async def test_a_handler_may_bury_its_task(stack: Stack, workshop: Workshop) -> None:
    await workshop.start_worker(returning(Bury()))
    task_id = await workshop.client.put("t", "")
    await until(lambda: _is(stack, task_id, "buried"))


async def test_a_handler_is_notified_of_a_cancellation_and_cancelled_when_its_lease_is_lost(
    stack: Stack, workshop: Workshop
) -> None:
    events: list[str] = []

    async def handler(attempt: Attempt) -> None:
        try:
            await attempt.cancelled.wait()
            events.append("cancelled")
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            events.append("lost")
            raise

    await workshop.start_worker(handler, lease=timedelta(seconds=2))
    task_id = await workshop.client.put("t", "")
    await until(lambda: _is(stack, task_id, "taken"))
    await stack.queue.cancel(task_id)
    await until(lambda: events == ["cancelled"])
    stack.advance_clock(HOUR)
    await stack.tick()
    await until(lambda: events == ["cancelled", "lost"])


async def test_a_saved_checkpoint_reaches_the_next_attempt(workshop: Workshop) -> None:
    async def long(attempt: Attempt) -> Result:
        if not attempt.checkpoint:
            assert await attempt.save("half")
            return Retry(timedelta(0))
        return attempt.checkpoint

    await workshop.start_worker(long)
    assert await workshop.client.call("t", "", SOON) == "half"


async def test_the_pause_of_a_retry_counts_from_the_end_of_the_attempt(workshop: Workshop) -> None:
    """Not from its claim: a long attempt would be repeated without a pause."""
    pause = 0.4
    ended: list[float] = []
    pauses: list[float] = []

    async def slow(attempt: Attempt) -> Result:
        if ended:
            pauses.append(time.monotonic() - ended[0])
            return None
        started = time.monotonic()
        await until(lambda: time.monotonic() > started + 2 * pause)
        ended.append(time.monotonic())
        return Retry(timedelta(seconds=pause))

    await workshop.start_worker(slow)
    await workshop.client.call("t", "", SOON)
    assert pauses[0] > pause - 0.05


async def test_a_changed_backoff_reaches_workers_that_run(stack: Stack, workshop: Workshop) -> None:
    await workshop.client.tubes.create(Tube("t", backoff=Backoff(HOUR, HOUR)))
    repeated: list[str] = []

    async def failing_once(attempt: Attempt) -> Result:
        if attempt.task.attempts == 1:
            return Retry()
        repeated.append(attempt.body)
        return None

    await workshop.start_worker(failing_once)
    before = await workshop.client.put("t", "before")
    await until(lambda: _is(stack, before, "waiting"))
    await workshop.client.tubes.create(Tube("t", backoff=QUICK))

    async def is_repeated() -> bool:
        await workshop.client.put("t", "after")
        return bool(repeated)

    await until(is_repeated, within=30, every=0.25)
    assert set(repeated) == {"after"}
