"""put: exactly once over broken connections, many in one step, in order."""

import asyncio
from datetime import timedelta

import pytest

from core.errors import FunctionFault, Invalid
from core.queue import NewTask, Queue
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack

pytestmark = on_both_servers


async def repeat(stack: Stack, queue: Queue, call: int, body: str, *, answered: int = 1) -> str:
    """Send put call number `call`, as the pipeline repeats it when the connection broke before the reply."""
    row = NewTask(body).row(queue.ids.next())
    return str((await stack.store.run("put", 0, queue.ids.client, call, answered, "t", *row))[0])


async def test_a_repeated_put_adds_nothing_even_after_its_task_has_ended(stack: Stack) -> None:
    """Recognising a repeat by its task doubled tasks that had ended meanwhile."""
    assert await repeat(stack, stack.queue, 1, "a") == "ready"
    assert await stack.finish_all() == ["a"]
    assert await repeat(stack, stack.queue, 1, "a") == "known"
    assert await stack.finish_all() == []


async def test_two_processes_whose_ids_have_the_same_client_name_both_put(stack: Stack) -> None:
    """There are 2 to the 32 of these names, so some of ten thousand scripts within an hour have the same one."""
    one, other = Queue(stack.store), Queue(stack.store)
    other.ids.client = one.ids.client
    await one.put("t", NewTask("a"))
    await other.put("t", NewTask("b"))
    assert await stack.finish_all() == ["a", "b"]


async def test_put_calls_that_arrive_out_of_order_are_each_done_once(stack: Stack) -> None:
    """After FUNCTION FLUSH a call is sent again behind later ones, so its number is lower than theirs."""
    for call in (3, 1, 2, 3, 2, 1):
        await repeat(stack, stack.queue, call, str(call))
    assert await stack.finish_all() == ["3", "1", "2"]


async def test_the_server_remembers_only_the_unanswered_put_calls_of_a_client(stack: Stack) -> None:
    for _ in range(50):
        await stack.queue.put("t", NewTask(""))
    (name,) = await stack.redis.keys("queue:{0}:puts:*")
    assert await stack.redis.zcard(name) == 1
    await asyncio.gather(*(stack.queue.put("t", NewTask("")) for _ in range(20)))
    assert await stack.redis.zcard(name) <= 20
    assert await stack.redis.pttl(name) > 0


async def test_puts_of_one_event_loop_turn_are_sent_in_one_step_in_their_order(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("first"))
    before = stack.store.pipelines.commands
    puts = [stack.queue.put("t", NewTask(str(n), lane="lane")) for n in range(30)]
    ids = await asyncio.gather(*puts, stack.queue.put_many("t", [NewTask("30", lane="lane")]))
    assert stack.store.pipelines.commands == before + 2
    assert len({str(one) for one in ids}) == 31
    assert await stack.finish_all() == ["first", *map(str, range(31))]


async def test_a_cancelled_put_does_not_affect_the_puts_sent_with_it(stack: Stack) -> None:
    gone, stays = (asyncio.create_task(stack.queue.put("t", NewTask(body))) for body in ("gone", "stays"))
    await asyncio.sleep(0)
    gone.cancel()
    assert await stack.state(await stays) == "ready"
    assert await stack.finish_all() == ["gone", "stays"]


async def test_a_failed_put_step_raises_to_each_of_its_callers(stack: Stack) -> None:
    await stack.redis.set("queue:{0}:counters", "no hash")
    puts = [asyncio.create_task(stack.queue.put("t", NewTask(str(n)))) for n in range(3)]
    found = await asyncio.gather(*puts, return_exceptions=True)
    assert [type(one) for one in found] == [FunctionFault] * 3
    await stack.redis.delete("queue:{0}:counters")


async def test_put_many_keeps_the_order_and_the_options_of_each_task(stack: Stack) -> None:
    later = stack.now() + timedelta(minutes=1)
    tasks = [NewTask("a", lane="lane"), NewTask("b", lane="lane"), NewTask("c", priority=1), NewTask("d", due=later)]
    ids = await stack.queue.put_many("t", tasks)
    assert [await stack.state(one) for one in ids] == ["ready", "locked", "ready", "waiting"]
    assert await stack.finish_all() == ["c", "a", "b"]
    stack.advance_clock(HOUR)
    assert await stack.finish_all() == ["d"]


async def test_a_thousand_tasks_are_put_and_taken_in_order(stack: Stack) -> None:
    ids = await stack.queue.put_many("t", [NewTask(str(n)) for n in range(1000)])
    assert len(set(ids)) == 1000
    assert await stack.finish_all() == [str(n) for n in range(1000)]


@pytest.mark.parametrize("invalid", [NewTask("", tags=["a\nb"]), NewTask("", tags=[""]), NewTask("", priority=-1)])
async def test_one_invalid_task_keeps_put_many_from_adding_any(stack: Stack, invalid: NewTask) -> None:
    with pytest.raises(Invalid):
        await stack.queue.put_many("t", [NewTask("fine"), invalid])
    assert await stack.finish_all() == []


async def test_two_thousand_tasks_due_at_one_moment_are_all_ready_then(stack: Stack) -> None:
    five = stack.now() + timedelta(minutes=17)
    await stack.queue.put_many("t", [NewTask(str(n), lane=f"user {n}", user=str(n), due=five) for n in range(2000)])
    stack.advance_clock(timedelta(minutes=16))
    assert await stack.finish_all() == []
    stack.advance_clock(timedelta(minutes=1))
    assert await stack.finish_all() == [str(n) for n in range(2000)]
