"""What a handler answers, raises, saves and hears, and how its task goes on."""

import asyncio
from datetime import timedelta

import pytest

from core.words import TaskState
from core.work import Bury, Done, Failed, Job, Result, Retry, Tube
from tests.core.house import HOUR, House
from tests.queue.shop import QUICK, SOON, Shop, answering
from tests.servers import on_both_servers
from tests.waiting import until


@on_both_servers
@pytest.mark.row("K-39")
@pytest.mark.parametrize(
    ("result", "state"), [(None, "done"), (Done("x"), "done"), ("x", "done"), (Failed("x"), "failed")]
)
async def test_what_a_handler_answers_is_how_the_task_ends(shop: Shop, result: Result, state: str) -> None:
    await shop.work.tubes.create(Tube("t", keep=HOUR / 2))
    await shop.open(answering(result))
    end = await shop.work.wait(await shop.work.put("t", ""), SOON)
    assert (end.state, end.answer) == (TaskState(state), "" if result is None else "x")


@pytest.mark.row("K-39", "K-25")
async def test_what_a_handler_raises_is_tried_again_with_backoff_and_buried_in_the_end(
    house: House, shop: Shop
) -> None:
    await shop.work.tubes.create(Tube("t", attempts=3, backoff=QUICK))
    attempts: list[int] = []

    async def failing(job: Job) -> None:
        attempts.append(job.task.attempts)
        raise ValueError

    await shop.open(failing)
    task_id = await shop.work.put("t", "")
    await until(lambda: _is(house, task_id, "buried"))
    assert attempts == [1, 2, 3]


async def _is(house: House, task_id: str, state: str) -> bool:
    return await house.state(task_id) == state


@pytest.mark.row("K-39", "K-37")
async def test_a_retry_may_change_the_payload_and_say_when(shop: Shop) -> None:
    async def changing(job: Job) -> Result:
        return (
            Retry(timedelta(milliseconds=20), body="second") if job.body == "first" else f"{job.body} {job.checkpoint}"
        )

    await shop.open(changing)
    assert await shop.work.call("t", "first", SOON) == "second "


@pytest.mark.row("K-34", "K-39")
async def test_a_handler_may_bury(house: House, shop: Shop) -> None:
    await shop.open(answering(Bury()))
    task_id = await shop.work.put("t", "")
    await until(lambda: _is(house, task_id, "buried"))


@pytest.mark.row("K-09", "K-39")
async def test_a_handler_hears_that_its_task_was_cancelled_and_is_stopped_when_it_was_lost(
    house: House, shop: Shop
) -> None:
    heard: list[str] = []

    async def handler(job: Job) -> None:
        try:
            await job.cancelled.wait()
            heard.append("cancelled")
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("lost")
            raise

    await shop.open(handler, lease=timedelta(milliseconds=300))
    task_id = await shop.work.put("t", "")
    await until(lambda: _is(house, task_id, "taken"))
    await house.queue.cancel(task_id)
    await until(lambda: heard == ["cancelled"])
    house.passes(HOUR)
    await house.tick()
    await until(lambda: heard == ["cancelled", "lost"])


@pytest.mark.row("K-33", "K-39")
async def test_a_checkpoint_reaches_the_next_holder(shop: Shop) -> None:
    async def long(job: Job) -> Result:
        if not job.checkpoint:
            assert await job.save("half")
            return Retry(timedelta(0))
        return job.checkpoint

    await shop.open(long)
    assert await shop.work.call("t", "", SOON) == "half"
