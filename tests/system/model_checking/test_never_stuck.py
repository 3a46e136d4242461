"""A lane that is stuck for ever: regression tests for the three ways in which an earlier queue got there.

In that queue, the next task of a user started only when the one before was settled. A task that was released with a
delay, expired, or was killed while taken was never settled, so no task of that user ran again.
"""

from datetime import timedelta

import pytest

from core.errors import NotFound
from core.queue import CancelResult, NewTask, SettleResult, Task, Tube, Tubes
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, LEASE, Stack

pytestmark = on_both_servers
USER = "user 7"
MINUTE = timedelta(minutes=1)


async def taken_and_next(stack: Stack) -> Task:
    """Puts two tasks into the lane of a user and takes the first; the second is locked behind it."""
    await stack.queue.put("t", NewTask("first", lane=USER, user=USER, expires=stack.now() + 2 * MINUTE))
    await stack.queue.put("t", NewTask("second", lane=USER, user=USER))
    (claimed,) = await stack.take()
    assert await stack.take() == [], "the second is locked behind the first"
    return claimed


def in_ms(stack: Stack, time: timedelta) -> int:
    return int((stack.now() + time).timestamp() * 1000)


async def test_a_release_with_a_delay_blocks_the_lane_no_longer_than_that_delay(stack: Stack) -> None:
    claimed = await taken_and_next(stack)
    assert await stack.queue.release(claimed, in_ms(stack, MINUTE)) == "waiting"
    assert await stack.take() == [], "strict order: a delayed task keeps its place"
    stack.advance_clock(MINUTE)
    assert await stack.finish_all() == ["first", "second"]


async def test_a_tube_that_parks_retries_continues_the_lane_at_once(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", retry="park"))
    claimed = await taken_and_next(stack)
    await stack.queue.settle(claimed, result=SettleResult.RETRY, due=in_ms(stack, MINUTE))
    assert await stack.finish_all() == ["second"]
    stack.advance_clock(MINUTE)
    assert await stack.finish_all() == ["first"]


async def test_a_first_task_that_expires_while_it_waits_frees_the_lane(stack: Stack) -> None:
    claimed = await taken_and_next(stack)
    await stack.queue.release(claimed, in_ms(stack, HOUR))
    stack.advance_clock(2 * MINUTE)
    assert await stack.finish_all() == ["second"], "the first expired while it waited"


async def test_a_taken_task_that_expires_stays_with_its_worker(stack: Stack) -> None:
    claimed = await taken_and_next(stack)
    await stack.queue.extend(claimed, HOUR)
    stack.advance_clock(3 * MINUTE)
    assert await stack.take() == [], "a taken task does not expire"
    assert await stack.queue.settle(claimed) == "done"
    assert await stack.finish_all() == ["second"]


async def test_an_expired_task_whose_worker_died_frees_the_lane(stack: Stack) -> None:
    await taken_and_next(stack)
    stack.advance_clock(2 * MINUTE + LEASE)
    assert await stack.finish_all() == ["second"], "its lease is over and it has expired, so it is not attempted again"


async def test_a_cancelled_taken_task_frees_the_lane_when_its_worker_settles(stack: Stack) -> None:
    claimed = await taken_and_next(stack)
    assert await stack.queue.cancel(claimed.task_id) == CancelResult(0, 1)
    assert await stack.queue.settle(claimed, result=SettleResult.RETRY) == "cancelled"
    assert await stack.finish_all() == ["second"]


async def test_a_cancelled_taken_task_frees_the_lane_after_its_lease_when_its_worker_is_gone(stack: Stack) -> None:
    claimed = await taken_and_next(stack)
    await stack.queue.cancel(claimed.task_id)
    stack.advance_clock(LEASE)
    assert await stack.finish_all() == ["second"]
    assert await stack.queue.settle(claimed) == "stale"
    with pytest.raises(NotFound):
        await stack.state(claimed.task_id)


async def test_purge_and_bury_leave_a_taken_task_to_its_worker(stack: Stack) -> None:
    claimed = await taken_and_next(stack)
    assert await stack.store.run("bury", 0, claimed.id) == 0
    assert await stack.store.run("purge", 0, claimed.id) == 0
    assert await stack.queue.settle(claimed) == "done"
    assert await stack.finish_all() == ["second"]
