"""put: exactly once whatever becomes of the connection, many in one step, ids that sort."""

import asyncio
from datetime import timedelta

import pytest

from core.errors import Invalid, ScriptFault
from core.queue.queue import NewTask, Queue
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack

pytestmark = on_both_servers


async def repeat(stack: Stack, queue: Queue, call: int, body: str, *, answered: int = 1) -> str:
    """What the pump sends when it does not know whether `call` was done."""
    row = NewTask(body).row(queue.ids.next())
    return str((await stack.store.run("put", 0, queue.ids.client, call, answered, "t", *row))[0])


@pytest.mark.row("K-30")
async def test_a_put_that_is_repeated_after_its_task_has_ended_adds_nothing(stack: Stack) -> None:
    """The old way knew a repeat by the task, and doubled one that was over by then."""
    assert await repeat(stack, stack.queue, 1, "a") == "ready"
    assert await stack.finish_all() == ["a"]
    assert await repeat(stack, stack.queue, 1, "a") == "known"
    assert await stack.finish_all() == []


@pytest.mark.row("K-30")
async def test_calls_that_overtake_each_other_are_each_done_once(stack: Stack) -> None:
    """A script that the server had forgotten is sent again behind later calls: its number is lower than theirs."""
    for call in (3, 1, 2, 3, 2, 1):
        await repeat(stack, stack.queue, call, str(call))
    assert await stack.finish_all() == ["3", "1", "2"]


@pytest.mark.row("K-30")
async def test_memory_is_for_the_unanswered_calls_of_a_client_alone(stack: Stack) -> None:
    for _ in range(50):
        await stack.queue.put("t", "")
    name = f"queue:{{0}}:puts:{stack.queue.ids.client}"
    assert await stack.redis.zcard(name) == 1
    await asyncio.gather(*(stack.queue.put("t", "") for _ in range(20)))
    assert await stack.redis.zcard(name) <= 20
    assert await stack.redis.pttl(name) > 0


@pytest.mark.row("K-01")
async def test_what_is_put_in_one_turn_goes_in_one_step_in_the_order_of_the_calls(stack: Stack) -> None:
    await stack.queue.put("t", "first")
    before = stack.store.pipeline.commands
    puts = [stack.queue.put("t", str(n), lane="lane") for n in range(30)]
    ids = await asyncio.gather(*puts, stack.queue.put_many("t", [NewTask("30", lane="lane")]))
    assert stack.store.pipeline.commands == before + 2
    assert len({str(one) for one in ids}) == 31
    assert await stack.finish_all() == ["first", *map(str, range(31))]


@pytest.mark.row("K-01")
async def test_who_does_not_wait_for_his_put_disturbs_nobody(stack: Stack) -> None:
    gone, stays = (asyncio.create_task(stack.queue.put("t", body)) for body in ("gone", "stays"))
    await asyncio.sleep(0)
    gone.cancel()
    assert await stack.state(await stays) == "ready"
    assert await stack.finish_all() == ["gone", "stays"]


@pytest.mark.row("K-01")
async def test_a_put_that_fails_fails_for_all_who_put_in_this_turn(stack: Stack) -> None:
    await stack.redis.set("queue:{0}:counters", "no hash")
    puts = [asyncio.create_task(stack.queue.put("t", str(n))) for n in range(3)]
    found = await asyncio.gather(*puts, return_exceptions=True)
    assert [type(one) for one in found] == [ScriptFault] * 3
    await stack.redis.delete("queue:{0}:counters")


@pytest.mark.row("K-01")
async def test_many_are_put_in_their_order_each_with_its_own_options(stack: Stack) -> None:
    later = stack.now() + timedelta(minutes=1)
    drafts = [NewTask("a", lane="lane"), NewTask("b", lane="lane"), NewTask("c", priority=1), NewTask("d", due=later)]
    ids = await stack.queue.put_many("t", drafts)
    assert [await stack.state(one) for one in ids] == ["ready", "locked", "ready", "waiting"]
    assert await stack.finish_all() == ["c", "a", "b"]
    stack.passes(HOUR)
    assert await stack.finish_all() == ["d"]


@pytest.mark.row("K-01")
async def test_a_thousand_are_put_and_taken_in_their_order(stack: Stack) -> None:
    ids = await stack.queue.put_many("t", [NewTask(str(n)) for n in range(1000)])
    assert len(set(ids)) == 1000
    assert await stack.finish_all() == [str(n) for n in range(1000)]


@pytest.mark.row("K-01")
@pytest.mark.parametrize("draft", [NewTask("", tags=["a\nb"]), NewTask("", tags=[""]), NewTask("", priority=-1)])
async def test_one_draft_that_makes_no_sense_keeps_all_out(stack: Stack, draft: NewTask) -> None:
    with pytest.raises(Invalid):
        await stack.queue.put_many("t", [NewTask("fine"), draft])
    assert await stack.finish_all() == []


@pytest.mark.row("K-07")
async def test_everybody_at_five_in_the_afternoon(stack: Stack) -> None:
    """Everything falls due at one moment, and all of it can be taken at that moment."""
    five = stack.now() + timedelta(minutes=17)
    await stack.queue.put_many("t", [NewTask(str(n), lane=f"user {n}", user=str(n), due=five) for n in range(2000)])
    stack.passes(timedelta(minutes=16))
    assert await stack.finish_all() == []
    stack.passes(timedelta(minutes=1))
    assert await stack.finish_all() == [str(n) for n in range(2000)]
