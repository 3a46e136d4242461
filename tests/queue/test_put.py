"""put: exactly once whatever becomes of the connection, many in one step, ids that sort."""

import asyncio
from datetime import timedelta

import pytest

from core.errors import Invalid, ScriptFault
from core.queue import Draft, Queue
from tests.core.house import HOUR, House
from tests.servers import on_both_servers

pytestmark = on_both_servers


async def repeat(house: House, queue: Queue, call: int, body: str, *, answered: int = 1) -> str:
    """What the pump sends when it does not know whether `call` was done."""
    row = Draft(body).row(queue.ids.next())
    return str((await house.store.run("put", 0, queue.ids.client, call, answered, "t", *row))[0])


@pytest.mark.row("K-30")
async def test_a_put_that_is_repeated_after_its_task_has_ended_adds_nothing(house: House) -> None:
    """The old way knew a repeat by the task, and doubled one that was over by then."""
    assert await repeat(house, house.queue, 1, "a") == "ready"
    assert await house.finish_all() == ["a"]
    assert await repeat(house, house.queue, 1, "a") == "known"
    assert await house.finish_all() == []


@pytest.mark.row("K-30")
async def test_calls_that_overtake_each_other_are_each_done_once(house: House) -> None:
    """A script that the server had forgotten is sent again behind later calls: its number is lower than theirs."""
    for call in (3, 1, 2, 3, 2, 1):
        await repeat(house, house.queue, call, str(call))
    assert await house.finish_all() == ["3", "1", "2"]


@pytest.mark.row("K-30")
async def test_memory_is_for_the_unanswered_calls_of_a_client_alone(house: House) -> None:
    for _ in range(50):
        await house.queue.put("t", "")
    name = f"queue:{{0}}:puts:{house.queue.ids.client}"
    assert await house.redis.zcard(name) == 1
    await asyncio.gather(*(house.queue.put("t", "") for _ in range(20)))
    assert await house.redis.zcard(name) <= 20
    assert await house.redis.pttl(name) > 0


@pytest.mark.row("K-01")
async def test_what_is_put_in_one_turn_goes_in_one_step_in_the_order_of_the_calls(house: House) -> None:
    await house.queue.put("t", "first")
    before = house.store.pump.commands
    puts = [house.queue.put("t", str(n), lane="lane") for n in range(30)]
    ids = await asyncio.gather(*puts, house.queue.put_many("t", [Draft("30", lane="lane")]))
    assert house.store.pump.commands == before + 2
    assert len({str(one) for one in ids}) == 31
    assert await house.finish_all() == ["first", *map(str, range(31))]


@pytest.mark.row("K-01")
async def test_who_does_not_wait_for_his_put_disturbs_nobody(house: House) -> None:
    gone, stays = (asyncio.create_task(house.queue.put("t", body)) for body in ("gone", "stays"))
    await asyncio.sleep(0)
    gone.cancel()
    assert await house.state(await stays) == "ready"
    assert await house.finish_all() == ["gone", "stays"]


@pytest.mark.row("K-01")
async def test_a_put_that_fails_fails_for_all_who_put_in_this_turn(house: House) -> None:
    await house.redis.set("queue:{0}:counters", "no hash")
    puts = [asyncio.create_task(house.queue.put("t", str(n))) for n in range(3)]
    found = await asyncio.gather(*puts, return_exceptions=True)
    assert [type(one) for one in found] == [ScriptFault] * 3
    await house.redis.delete("queue:{0}:counters")


@pytest.mark.row("K-01")
async def test_many_are_put_in_their_order_each_with_its_own_options(house: House) -> None:
    later = house.now() + timedelta(minutes=1)
    drafts = [Draft("a", lane="lane"), Draft("b", lane="lane"), Draft("c", priority=1), Draft("d", due=later)]
    ids = await house.queue.put_many("t", drafts)
    assert [await house.state(one) for one in ids] == ["ready", "locked", "ready", "waiting"]
    assert await house.finish_all() == ["c", "a", "b"]
    house.passes(HOUR)
    assert await house.finish_all() == ["d"]


@pytest.mark.row("K-01")
async def test_a_thousand_are_put_and_taken_in_their_order(house: House) -> None:
    ids = await house.queue.put_many("t", [Draft(str(n)) for n in range(1000)])
    assert len(set(ids)) == 1000
    assert await house.finish_all() == [str(n) for n in range(1000)]


@pytest.mark.row("K-01")
@pytest.mark.parametrize("draft", [Draft("", tags=["a\nb"]), Draft("", tags=[""]), Draft("", priority=-1)])
async def test_one_draft_that_makes_no_sense_keeps_all_out(house: House, draft: Draft) -> None:
    with pytest.raises(Invalid):
        await house.queue.put_many("t", [Draft("fine"), draft])
    assert await house.finish_all() == []


@pytest.mark.row("K-07")
async def test_everybody_at_five_in_the_afternoon(house: House) -> None:
    """Everything falls due at one moment, and all of it can be taken at that moment."""
    five = house.now() + timedelta(minutes=17)
    await house.queue.put_many("t", [Draft(str(n), lane=f"user {n}", user=str(n), due=five) for n in range(2000)])
    house.passes(timedelta(minutes=16))
    assert await house.finish_all() == []
    house.passes(timedelta(minutes=1))
    assert await house.finish_all() == [str(n) for n in range(2000)]
