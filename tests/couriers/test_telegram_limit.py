"""One time limit for many who wait."""

import asyncio
import time
from datetime import timedelta

import pytest

from couriers.telegram.limit import TimeLimit

SOON = timedelta(seconds=0.1)
pytestmark = pytest.mark.row("D-38")


async def test_who_waits_too_long_is_told_and_the_others_get_their_answers() -> None:
    limit = TimeLimit(SOON)
    never, answer = asyncio.Future[str](), asyncio.Future[str]()
    waiting = [asyncio.create_task(limit.keep(future)) for future in (never, answer)]
    await asyncio.sleep(0)
    answer.set_result("here")
    with pytest.raises(TimeoutError):
        await waiting[0]
    assert await waiting[1] == "here"
    assert never.cancelled()


async def test_each_waits_as_long_as_the_first() -> None:
    """The timer of the first must be followed by one for the second."""
    limit = TimeLimit(SOON)
    took = []

    async def wait() -> None:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await limit.keep(asyncio.Future[None]())
        took.append(time.monotonic() - began)

    async def wait_later() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SOON.total_seconds() / 2):
                await asyncio.Future[None]()
        await wait()

    await asyncio.gather(wait(), wait_later())
    await wait()
    assert len(took) == 3
    assert min(took) >= SOON.total_seconds() - 0.01


async def test_who_is_cancelled_by_another_is_cancelled() -> None:
    waiting = asyncio.create_task(TimeLimit(SOON).keep(asyncio.Future[None]()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_who_is_late_and_cancelled_by_another_in_one_turn_of_the_loop_is_cancelled() -> None:
    limit = TimeLimit(timedelta(0))
    waiting = asyncio.create_task(limit.keep(asyncio.Future[None]()))
    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: loop.call_at(loop.time(), waiting.cancel))  # due in the same turn as the limit, after it
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_task_that_was_late_once_may_wait_again() -> None:
    limit = TimeLimit(SOON)
    with pytest.raises(TimeoutError):
        await limit.keep(asyncio.Future[None]())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    answer = asyncio.Future[str]()
    asyncio.get_running_loop().call_soon(answer.set_result, "here")
    assert await limit.keep(answer) == "here"
