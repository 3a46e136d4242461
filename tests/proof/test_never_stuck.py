"""A user who is stuck for ever: the queue this idea comes from had three ways to it. Here each is walked.

There a user's next task was freed only when the one before was settled. Released with a delay, run into its expiry or
killed while it was taken, it was never settled, and nothing of that user ran again.
"""

from datetime import timedelta

import pytest

from core.errors import NotFound
from core.queue import Task
from core.tubes import Tube, Tubes
from tests.core.house import HOUR, LEASE, House
from tests.servers import on_both_servers

pytestmark = [pytest.mark.row("K-15", "K-17"), on_both_servers]
USER = "user 7"
MINUTE = timedelta(minutes=1)


async def holder_and_next(house: House) -> Task:
    """The user's first task, taken; a second one waits behind it, a third one is another user's."""
    await house.queue.put("t", "first", lane=USER, user=USER, expires=house.now() + 2 * MINUTE)
    await house.queue.put("t", "second", lane=USER, user=USER)
    (held,) = await house.take()
    assert await house.take() == [], "the second is locked behind the first"
    return held


def in_ms(house: House, time: timedelta) -> int:
    return int((house.now() + time).timestamp() * 1000)


async def test_a_release_with_a_delay_holds_the_user_no_longer_than_that_delay(house: House) -> None:
    held = await holder_and_next(house)
    assert await house.queue.release(held, in_ms(house, MINUTE)) == "waiting"
    assert await house.take() == [], "strict order: what was put off keeps its place"
    house.passes(MINUTE)
    assert await house.finish_all() == ["first", "second"]


async def test_a_parking_tube_goes_on_with_the_user_at_once(house: House) -> None:
    await Tubes(house.store).create(Tube("t", retry="park"))
    held = await holder_and_next(house)
    await house.queue.settle(held, result="retry", due=in_ms(house, MINUTE))
    assert await house.finish_all() == ["second"]
    house.passes(MINUTE)
    assert await house.finish_all() == ["first"]


async def test_the_expiry_of_the_holder_while_it_waits_frees_the_user(house: House) -> None:
    held = await holder_and_next(house)
    await house.queue.release(held, in_ms(house, HOUR))
    house.passes(2 * MINUTE)
    assert await house.finish_all() == ["second"], "the first has expired where it waited"


async def test_the_expiry_of_the_holder_while_it_is_taken_leaves_it_to_its_worker(house: House) -> None:
    held = await holder_and_next(house)
    await house.queue.extend(held, HOUR)
    house.passes(3 * MINUTE)
    assert await house.take() == [], "what is taken does not expire"
    assert await house.queue.settle(held) == "done"
    assert await house.finish_all() == ["second"]


async def test_the_expiry_of_a_holder_whose_worker_died_frees_the_user(house: House) -> None:
    await holder_and_next(house)
    house.passes(2 * MINUTE + LEASE)
    assert await house.finish_all() == ["second"], "its lease and its time are over: nobody is to get it any more"


async def test_a_cancel_of_a_taken_task_frees_the_user_at_its_workers_next_word(house: House) -> None:
    held = await holder_and_next(house)
    assert await house.queue.cancel(held.name) == {"cancelled": 0, "flagged": 1}
    assert await house.queue.settle(held, result="retry") == "cancelled"
    assert await house.finish_all() == ["second"]


async def test_a_cancel_of_a_taken_task_frees_the_user_although_its_worker_never_speaks_again(house: House) -> None:
    held = await holder_and_next(house)
    await house.queue.cancel(held.name)
    house.passes(LEASE)
    assert await house.finish_all() == ["second"]
    assert await house.queue.settle(held) == "stale"
    with pytest.raises(NotFound):
        await house.state(held.name)


async def test_a_purge_or_bury_cannot_take_a_task_out_of_a_workers_hands(house: House) -> None:
    held = await holder_and_next(house)
    assert await house.store.run("bury", 0, held.id) == 0
    assert await house.store.run("purge", 0, held.id) == 0
    assert await house.queue.settle(held) == "done"
    assert await house.finish_all() == ["second"]
