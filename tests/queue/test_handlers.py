"""What a handler answers, raises, saves and hears, and how its task goes on."""

import asyncio
from datetime import timedelta

import pytest

from core.model.states import TaskState
from core.queue.client import Attempt, Bury, Done, Failed, Result, Retry, Tube
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack
from tests.support.waiting import until
from tests.support.workshop import QUICK, SOON, Shop, answering


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
    stack: Stack, shop: Shop
) -> None:
    await shop.work.tubes.create(Tube("t", attempts=3, backoff=QUICK))
    attempts: list[int] = []

    async def failing(job: Attempt) -> None:
        attempts.append(job.task.attempts)
        raise ValueError

    await shop.open(failing)
    task_id = await shop.work.put("t", "")
    await until(lambda: _is(stack, task_id, "buried"))
    assert attempts == [1, 2, 3]


async def _is(stack: Stack, task_id: str, state: str) -> bool:
    return await stack.state(task_id) == state


@pytest.mark.row("K-39", "K-37")
async def test_a_retry_may_change_the_payload_and_say_when(shop: Shop) -> None:
    async def changing(job: Attempt) -> Result:
        return (
            Retry(timedelta(milliseconds=20), body="second") if job.body == "first" else f"{job.body} {job.checkpoint}"
        )

    await shop.open(changing)
    assert await shop.work.call("t", "first", SOON) == "second "


@pytest.mark.row("K-34", "K-39")
async def test_a_handler_may_bury(stack: Stack, shop: Shop) -> None:
    await shop.open(answering(Bury()))
    task_id = await shop.work.put("t", "")
    await until(lambda: _is(stack, task_id, "buried"))


@pytest.mark.row("K-09", "K-39")
async def test_a_handler_hears_that_its_task_was_cancelled_and_is_stopped_when_it_was_lost(
    stack: Stack, shop: Shop
) -> None:
    heard: list[str] = []

    async def handler(job: Attempt) -> None:
        try:
            await job.cancelled.wait()
            heard.append("cancelled")
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("lost")
            raise

    await shop.open(handler, lease=timedelta(milliseconds=300))
    task_id = await shop.work.put("t", "")
    await until(lambda: _is(stack, task_id, "taken"))
    await stack.queue.cancel(task_id)
    await until(lambda: heard == ["cancelled"])
    stack.passes(HOUR)
    await stack.tick()
    await until(lambda: heard == ["cancelled", "lost"])


@pytest.mark.row("K-33", "K-39")
async def test_a_checkpoint_reaches_the_next_holder(shop: Shop) -> None:
    async def long(job: Attempt) -> Result:
        if not job.checkpoint:
            assert await job.save("half")
            return Retry(timedelta(0))
        return job.checkpoint

    await shop.open(long)
    assert await shop.work.call("t", "", SOON) == "half"
