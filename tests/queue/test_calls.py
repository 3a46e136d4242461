"""Calls and waiting: every asker gets its own answer, also after a restart."""

import asyncio
import time
from datetime import timedelta

import pytest

from core.errors import Invalid, NotFound
from core.words import TaskState
from core.work import Failed, Tube, Unanswered, Work
from tests.core.house import HOUR, House
from tests.queue.shop import SOON, Shop, answering, echo
from tests.servers import Server, on_both_servers
from tests.waiting import until


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
    with pytest.raises(Unanswered, match="failed: no such thing"):
        await shop.work.call("t", "", SOON)


@pytest.mark.row("K-20", "K-03")
async def test_a_call_that_nobody_takes_times_out_and_is_never_begun(house: House, shop: Shop) -> None:
    with pytest.raises(TimeoutError):
        await shop.work.call("t", "late", timedelta(milliseconds=50))
    house.passes(timedelta(seconds=1))
    assert await house.finish_all() == []


@pytest.mark.row("K-20")
async def test_an_answer_survives_a_restart_of_its_caller(house: House, shop: Shop) -> None:
    before = Work(house.store, "caller")
    early, late = [await before.ask("t", text) for text in ("early", "late")]
    await before.close()
    (task, _) = await house.take(limit=2, lease=HOUR)
    await house.queue.settle(task, answer="EARLY")
    after = Work(house.store, "caller")
    assert await after.answer(early, SOON) == "EARLY"
    house.passes(2 * HOUR)
    await shop.open(echo)
    assert await after.answer(late, SOON) == "LATE"
    assert await house.redis.xlen("reply:{0}:caller") == 0
    await after.close()


@pytest.mark.row("K-20", "K-31")
async def test_an_answer_survives_a_restart_of_the_server(own_server: Server) -> None:
    house = await House.open(own_server)
    shop = Shop(house.store)
    calling = asyncio.create_task(shop.work.call("t", "text", timedelta(seconds=20)))
    await until(lambda: _put(house))
    own_server.kill()
    own_server.start()
    await shop.open(echo)
    assert await calling == "TEXT"
    await shop.end()
    await house.close()


async def _put(house: House) -> bool:
    return bool((await house.queue.stats())["tubes"].get("t"))


@on_both_servers
@pytest.mark.row("K-36")
async def test_several_wait_for_the_end_of_a_task_that_others_put(house: House, shop: Shop) -> None:
    task_id = await house.queue.put("t", "", lane="lane")
    others = [Work(house.store) for _ in range(3)]
    waiting = [asyncio.create_task(work.wait(task_id, SOON)) for work in others]
    await until(lambda: _waits(house, task_id, 3))
    (task,) = await house.take()
    began = time.monotonic()
    await house.queue.settle(task, answer="x")
    assert {(await one).answer for one in waiting} == {"x"}
    assert time.monotonic() - began < 0.5
    for work in others:
        await work.close()


async def _waits(house: House, task_id: str, count: int) -> bool:
    told = await house.redis.hget(f"queue:{{0}}:task:{task_id.partition('.')[2]}", "reply")
    return len(str(told).split()) == count


@pytest.mark.row("K-36")
@pytest.mark.parametrize("end", ["cancelled", "expired"])
async def test_who_waits_hears_of_every_end(house: House, shop: Shop, end: str) -> None:
    task_id = await house.queue.put("t", "", expires=house.now() + timedelta(minutes=1))
    waiting = asyncio.create_task(shop.work.wait(task_id, SOON))
    await until(lambda: _waits(house, task_id, 1))
    if end == "cancelled":
        await house.queue.cancel(task_id)
    else:
        house.passes(HOUR)
        await house.tick()
    assert (await waiting).state == end


@pytest.mark.row("K-36")
async def test_waiting_for_what_is_over_ends_at_once(house: House, shop: Shop) -> None:
    await shop.work.tubes.create(Tube("kept", keep=HOUR / 2))
    kept, gone = await house.queue.put("kept", ""), await house.queue.put("t", "")
    await house.finish_all("kept")
    await house.finish_all("t")
    assert (await shop.work.wait(kept, SOON)).state is TaskState.DONE
    with pytest.raises(NotFound):
        await shop.work.wait(gone, SOON)
    with pytest.raises(TimeoutError):
        await shop.work.wait(await house.queue.put("t", ""), timedelta(milliseconds=30))


@pytest.mark.row("K-20")
@pytest.mark.parametrize("name", ["two words", "\n"])
async def test_a_client_is_one_word(house: House, name: str) -> None:
    with pytest.raises(Invalid):
        Work(house.store, name)
