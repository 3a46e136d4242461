"""A suspended task waits until it is woken: its place in the lane, its expiry, its checkpoint, lost wake-ups."""

from datetime import timedelta

import pytest

from core.errors import NotFound
from core.queue import Attempt, NewTask, Result, Suspend
from tests.support.stack import HOUR, Stack
from tests.support.waiting import until
from tests.support.workshop import SOON, Workshop

DAY = timedelta(days=1)


async def put_all(stack: Stack, *bodies: str) -> list[str]:
    return [await stack.queue.put("t", NewTask(body, lane="lane")) for body in bodies]


def later(stack: Stack, time: timedelta = DAY) -> int:
    return int((stack.now() + time).timestamp() * 1000)


async def test_a_suspended_task_keeps_its_lane_waiting_and_is_the_next_one_when_it_is_woken(stack: Stack) -> None:
    first, _ = await put_all(stack, "a", "b")
    (task,) = await stack.take()
    assert await stack.queue.suspend(task, later(stack)) == "waiting"
    assert await stack.take() == []
    assert await stack.queue.wake(first)
    assert await stack.finish_all() == ["a", "b"]


async def test_a_suspended_task_that_leaves_its_lane_is_the_last_one_when_it_is_woken(stack: Stack) -> None:
    first, *_ = await put_all(stack, "a", "b", "c")
    (task,) = await stack.take()
    assert await stack.queue.suspend(task, later(stack), leaves_lane=True) == "waiting"
    (second,) = await stack.take()
    assert second.body == "b"
    await stack.queue.wake(first)
    assert await stack.take() == []
    await stack.queue.settle(second)
    assert await stack.finish_all() == ["c", "a"]


async def test_a_woken_task_enters_its_lane_behind_those_that_fell_due_before(stack: Stack) -> None:
    first = await stack.queue.put("t", NewTask("a", lane="lane"))
    (task,) = await stack.take()
    await stack.queue.suspend(task, later(stack), leaves_lane=True)
    await stack.queue.put("t", NewTask("deferred", lane="lane", due=stack.now() + HOUR))
    stack.advance_clock(2 * HOUR)
    await stack.queue.wake(first)
    assert await stack.finish_all() == ["deferred", "a"]


async def test_a_task_that_is_never_woken_is_attempted_when_it_is_due_with_its_checkpoint(stack: Stack) -> None:
    await put_all(stack, "a")
    (task,) = await stack.take()
    await stack.queue.suspend(task, later(stack, HOUR), checkpoint="so far")
    stack.advance_clock(2 * HOUR)
    (again,) = await stack.take()
    assert (again.checkpoint, again.attempts, again.crashed) == ("so far", 1, False)


async def test_a_wake_up_before_the_suspension_is_not_lost_and_counts_once(stack: Stack) -> None:
    """What a task waits for may end between its check and its suspension."""
    first, _ = await put_all(stack, "a", "b")
    (task,) = await stack.take()
    await stack.queue.wake(first)
    assert await stack.queue.suspend(task, later(stack), leaves_lane=True) == "ready"
    (task,) = await stack.take()
    assert task.body == "a"
    assert await stack.queue.suspend(task, later(stack)) == "waiting"


async def test_a_task_that_was_suspended_does_not_expire(stack: Stack) -> None:
    task_id = await stack.queue.put("t", NewTask("a", expires=stack.now() + HOUR))
    (task,) = await stack.take()
    await stack.queue.suspend(task, later(stack))
    stack.advance_clock(2 * HOUR)
    await stack.tick()
    await stack.queue.wake(task_id)
    assert await stack.finish_all() == ["a"]


async def test_a_suspended_task_can_be_cancelled_and_frees_its_lane(stack: Stack) -> None:
    first, _ = await put_all(stack, "a", "b")
    (task,) = await stack.take()
    await stack.queue.suspend(task, later(stack))
    await stack.queue.cancel(first)
    assert not await stack.queue.wake(first)
    assert await stack.finish_all() == ["b"]


async def test_after_a_crash_a_suspended_task_is_first_in_its_lane(stack: Stack) -> None:
    first, _ = await put_all(stack, "a", "b")
    (task,) = await stack.take()
    await stack.queue.suspend(task, later(stack))
    await stack.queue.wake(first)
    await stack.take()
    stack.advance_clock(HOUR)
    assert await stack.finish_all() == ["a", "b"]


async def test_an_id_that_is_none_is_refused_and_one_of_an_ended_task_changes_nothing(stack: Stack) -> None:
    (first,) = await put_all(stack, "a")
    await stack.finish_all()
    assert not await stack.queue.wake(first)
    with pytest.raises(NotFound):
        await stack.queue.wake("nonsense")


async def test_a_handler_suspends_its_task_more_often_than_its_tube_allows_attempts(
    stack: Stack, workshop: Workshop
) -> None:
    """A suspension is no attempt: with 10 allowed the task is suspended 20 times."""
    seen: list[str] = []

    async def suspending(attempt: Attempt) -> Result:
        seen.append(attempt.checkpoint)
        return Suspend(DAY, checkpoint=f"{len(seen)}") if len(seen) < 20 else "done"

    await workshop.start_worker(suspending)
    task_id = await workshop.client.ask("t", "")
    for number in range(1, 20):
        await until(lambda: len(seen) == number)  # noqa: B023 - awaited at once
        await workshop.client.queue.wake(task_id)
    assert await workshop.client.answer(task_id, SOON) == "done"
    assert seen == ["", *map(str, range(1, 20))]
