"""Calls and waiting: every asker gets its own answer, also after a restart."""

import asyncio
import time
from datetime import timedelta

import pytest

from core.errors import Invalid, NotFound
from core.model.states import TaskState
from core.queue.client import CallFailed, Failed, QueueClient, Tube
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, Stack
from tests.support.waiting import until
from tests.support.workshop import SOON, Shop, answering, echo


@on_both_servers
@pytest.mark.row("K-20")
async def test_many_callers_get_their_own_answers(shop: Shop) -> None:
    await shop.open(echo)
    texts = [f"call {n}" for n in range(200)]
    assert await asyncio.gather(*(shop.work.call("t", text, SOON) for text in texts)) == [
        text.upper() for text in texts
    ]
    assert not shop.work.replies._heard


@pytest.mark.row("K-20")
async def test_a_call_that_did_not_work_says_so(shop: Shop) -> None:
    await shop.open(answering(Failed("no such thing")))
    with pytest.raises(CallFailed, match="failed: no such thing"):
        await shop.work.call("t", "", SOON)


@pytest.mark.row("K-20", "K-03")
async def test_a_call_that_nobody_takes_times_out_and_is_never_begun(stack: Stack, shop: Shop) -> None:
    with pytest.raises(TimeoutError):
        await shop.work.call("t", "late", timedelta(milliseconds=50))
    stack.passes(timedelta(seconds=1))
    assert await stack.finish_all() == []


@pytest.mark.row("K-20")
async def test_an_answer_survives_a_restart_of_its_caller(stack: Stack, shop: Shop) -> None:
    before = QueueClient(stack.store, "caller")
    early, late = [await before.ask("t", text) for text in ("early", "late")]
    await before.close()
    (task, _) = await stack.take(limit=2, lease=HOUR)
    await stack.queue.settle(task, answer="EARLY")
    after = QueueClient(stack.store, "caller")
    assert await after.answer(early, SOON) == "EARLY"
    stack.passes(2 * HOUR)
    await shop.open(echo)
    assert await after.answer(late, SOON) == "LATE"
    assert await stack.redis.xlen("reply:{0}:caller") == 0
    await after.close()


@pytest.mark.row("K-20", "K-31")
async def test_an_answer_survives_a_restart_of_the_server(own_server: Server) -> None:
    stack = await Stack.open(own_server)
    shop = Shop(stack.store)
    calling = asyncio.create_task(shop.work.call("t", "text", timedelta(seconds=20)))
    await until(lambda: _put(stack))
    own_server.kill()
    own_server.start()
    await shop.open(echo)
    assert await calling == "TEXT"
    await shop.end()
    await stack.close()


async def _put(stack: Stack) -> bool:
    return bool((await stack.queue.stats())["tubes"].get("t"))


@on_both_servers
@pytest.mark.row("K-36")
async def test_several_wait_for_the_end_of_a_task_that_others_put(stack: Stack, shop: Shop) -> None:
    task_id = await stack.queue.put("t", "", lane="lane")
    others = [QueueClient(stack.store) for _ in range(3)]
    waiting = [asyncio.create_task(work.wait(task_id, SOON)) for work in others]
    await until(lambda: _waits(stack, task_id, 3))
    (task,) = await stack.take()
    began = time.monotonic()
    await stack.queue.settle(task, answer="x")
    assert {(await one).answer for one in waiting} == {"x"}
    assert time.monotonic() - began < 0.5
    for work in others:
        await work.close()


async def _waits(stack: Stack, task_id: str, count: int) -> bool:
    told = await stack.redis.hget(f"queue:{{0}}:task:{task_id.partition('.')[2]}", "reply")
    return len(str(told).split()) == count


@pytest.mark.row("K-36")
@pytest.mark.parametrize("end", ["cancelled", "expired"])
async def test_who_waits_hears_of_every_end(stack: Stack, shop: Shop, end: str) -> None:
    task_id = await stack.queue.put("t", "", expires=stack.now() + timedelta(minutes=1))
    waiting = asyncio.create_task(shop.work.wait(task_id, SOON))
    await until(lambda: _waits(stack, task_id, 1))
    if end == "cancelled":
        await stack.queue.cancel(task_id)
    else:
        stack.passes(HOUR)
        await stack.tick()
    assert (await waiting).state == end


@pytest.mark.row("K-36")
async def test_waiting_for_what_is_over_ends_at_once(stack: Stack, shop: Shop) -> None:
    await shop.work.tubes.create(Tube("kept", keep=HOUR / 2))
    kept, gone = await stack.queue.put("kept", ""), await stack.queue.put("t", "")
    await stack.finish_all("kept")
    await stack.finish_all("t")
    assert (await shop.work.wait(kept, SOON)).state is TaskState.DONE
    with pytest.raises(NotFound):
        await shop.work.wait(gone, SOON)
    with pytest.raises(TimeoutError):
        await shop.work.wait(await stack.queue.put("t", ""), timedelta(milliseconds=30))


@pytest.mark.row("K-20")
@pytest.mark.parametrize("name", ["two words", "\n"])
async def test_a_client_is_one_word(stack: Stack, name: str) -> None:
    with pytest.raises(Invalid):
        QueueClient(stack.store, name)
