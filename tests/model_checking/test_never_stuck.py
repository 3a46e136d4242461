"""A user who is stuck for ever: the queue this idea comes from had three ways to it. Here each is walked.

There a user's next task was freed only when the one before was settled. Released with a delay, run into its expiry or
killed while it was taken, it was never settled, and nothing of that user ran again.
"""

from datetime import timedelta

import pytest

from core.errors import NotFound
from core.queue.queue import Task
from core.queue.tubes import Tube, Tubes
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, LEASE, Stack

pytestmark = [pytest.mark.row("K-15", "K-17"), on_both_servers]
USER = "user 7"
MINUTE = timedelta(minutes=1)


async def holder_and_next(stack: Stack) -> Task:
    """The user's first task, taken; a second one waits behind it, a third one is another user's."""
    await stack.queue.put("t", "first", lane=USER, user=USER, expires=stack.now() + 2 * MINUTE)
    await stack.queue.put("t", "second", lane=USER, user=USER)
    (held,) = await stack.take()
    assert await stack.take() == [], "the second is locked behind the first"
    return held


def in_ms(stack: Stack, time: timedelta) -> int:
    return int((stack.now() + time).timestamp() * 1000)


async def test_a_release_with_a_delay_holds_the_user_no_longer_than_that_delay(stack: Stack) -> None:
    held = await holder_and_next(stack)
    assert await stack.queue.release(held, in_ms(stack, MINUTE)) == "waiting"
    assert await stack.take() == [], "strict order: what was put off keeps its place"
    stack.passes(MINUTE)
    assert await stack.finish_all() == ["first", "second"]


async def test_a_parking_tube_goes_on_with_the_user_at_once(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", retry="park"))
    held = await holder_and_next(stack)
    await stack.queue.settle(held, result="retry", due=in_ms(stack, MINUTE))
    assert await stack.finish_all() == ["second"]
    stack.passes(MINUTE)
    assert await stack.finish_all() == ["first"]


async def test_the_expiry_of_the_holder_while_it_waits_frees_the_user(stack: Stack) -> None:
    held = await holder_and_next(stack)
    await stack.queue.release(held, in_ms(stack, HOUR))
    stack.passes(2 * MINUTE)
    assert await stack.finish_all() == ["second"], "the first has expired where it waited"


async def test_the_expiry_of_the_holder_while_it_is_taken_leaves_it_to_its_worker(stack: Stack) -> None:
    held = await holder_and_next(stack)
    await stack.queue.extend(held, HOUR)
    stack.passes(3 * MINUTE)
    assert await stack.take() == [], "what is taken does not expire"
    assert await stack.queue.settle(held) == "done"
    assert await stack.finish_all() == ["second"]


async def test_the_expiry_of_a_holder_whose_worker_died_frees_the_user(stack: Stack) -> None:
    await holder_and_next(stack)
    stack.passes(2 * MINUTE + LEASE)
    assert await stack.finish_all() == ["second"], "its lease and its time are over: nobody is to get it any more"


async def test_a_cancel_of_a_taken_task_frees_the_user_at_its_workers_next_word(stack: Stack) -> None:
    held = await holder_and_next(stack)
    assert await stack.queue.cancel(held.name) == {"cancelled": 0, "flagged": 1}
    assert await stack.queue.settle(held, result="retry") == "cancelled"
    assert await stack.finish_all() == ["second"]


async def test_a_cancel_of_a_taken_task_frees_the_user_although_its_worker_never_speaks_again(stack: Stack) -> None:
    held = await holder_and_next(stack)
    await stack.queue.cancel(held.name)
    stack.passes(LEASE)
    assert await stack.finish_all() == ["second"]
    assert await stack.queue.settle(held) == "stale"
    with pytest.raises(NotFound):
        await stack.state(held.name)


async def test_a_purge_or_bury_cannot_take_a_task_out_of_a_workers_hands(stack: Stack) -> None:
    held = await holder_and_next(stack)
    assert await stack.store.run("bury", 0, held.id) == 0
    assert await stack.store.run("purge", 0, held.id) == 0
    assert await stack.queue.settle(held) == "done"
    assert await stack.finish_all() == ["second"]
