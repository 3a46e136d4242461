"""Lanes: which task is locked behind which, and that nothing leaves a lane stuck."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from core.errors import NotFound
from core.queue import CancelResult, NewTask, SettleResult, Task, TaskFilter, Tube, Tubes
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, LEASE, Stack

pytestmark = on_both_servers

MINUTE = timedelta(minutes=1)
Ending = Callable[[Stack, Task], Awaitable[Any]]


def ms(stack: Stack, ahead: timedelta) -> int:
    return int((stack.now() + ahead).timestamp() * 1000)


async def lock_state(stack: Stack, task_id: str) -> tuple[str, str | None]:
    """Return a task's state and the task it waits for."""
    task = await stack.queue.inspector.peek(task_id)
    return task.state, task.waits_for


async def test_a_locked_task_names_the_task_in_front_also_while_that_backs_off(stack: Stack) -> None:
    first, second, third = await stack.queue.put_many("t", [NewTask("", lane="lane") for _ in range(3)])
    assert [await lock_state(stack, one) for one in (first, second, third)] == [
        ("ready", None),
        ("locked", first),
        ("locked", first),
    ]
    (task,) = await stack.take()
    assert await lock_state(stack, second) == ("locked", first)
    await stack.queue.settle(task, result=SettleResult.RETRY, due=ms(stack, MINUTE))
    assert await lock_state(stack, first) == ("waiting", None)
    assert await lock_state(stack, second) == ("locked", first)
    await stack.queue.cancel(first)
    assert [await lock_state(stack, one) for one in (second, third)] == [("ready", None), ("locked", second)]
    (listed,) = await stack.queue.inspector.select(TaskFilter(lane="lane", state="locked"))
    assert (listed.id, listed.waits_for) == (third, second)


@pytest.mark.parametrize("how", ["done", "buried", "cancelled", "failed"])
async def test_the_end_of_a_lanes_first_task_makes_exactly_the_next_one_ready(stack: Stack, how: str) -> None:
    ids = await stack.queue.put_many("t", [NewTask(str(n), lane="lane", priority=9 - n) for n in range(4)])
    (task,) = await stack.take()
    if how == "cancelled":
        await stack.queue.cancel(ids[0])
    result = SettleResult({"buried": "bury", "cancelled": "retry"}.get(how, how))
    assert await stack.queue.settle(task, result=result) == how
    await stack.audit()
    assert [await lock_state(stack, one) for one in ids[1:]] == [
        ("ready", None),
        ("locked", ids[1]),
        ("locked", ids[1]),
    ]
    assert [task.body for task in await stack.take(limit=10)] == ["1"]


@pytest.mark.parametrize("backs_off", [False, True])
async def test_a_task_due_while_its_lane_is_busy_is_locked_and_runs_in_its_turn(stack: Stack, backs_off: bool) -> None:
    deferred = await stack.queue.put("t", NewTask("deferred", lane="lane", due=stack.now() + MINUTE))
    holder, _ = await stack.queue.put_many("t", [NewTask("holder", lane="lane"), NewTask("behind", lane="lane")])
    (task,) = await stack.take(lease=HOUR)
    if backs_off:
        await stack.queue.settle(task, result=SettleResult.RETRY, due=ms(stack, HOUR / 2))
    stack.advance_clock(2 * MINUTE)
    await stack.tick()
    assert await lock_state(stack, deferred) == ("locked", holder)
    assert await stack.take(limit=10) == []
    await stack.queue.put("t", NewTask("put later", lane="lane"))
    if backs_off:
        stack.advance_clock(HOUR / 2)
    else:
        await stack.queue.release(task)
    assert await stack.finish_all() == ["holder", "behind", "deferred", "put later"]


async def _bury_waiting(stack: Stack, task: Task) -> None:
    await stack.queue.release(task, ms(stack, HOUR))
    await stack.queue.bury(task.task_id)


async def _cancel_waiting(stack: Stack, task: Task) -> None:
    await stack.queue.settle(task, result=SettleResult.RETRY, due=ms(stack, HOUR))
    await stack.queue.cancel(task.task_id)


async def _cancelled_and_lost(stack: Stack, task: Task) -> None:
    """A taken task is cancelled, and its worker dies before it is notified."""
    await stack.queue.cancel(task.task_id)
    stack.advance_clock(2 * LEASE)


async def _expire_waiting(stack: Stack, task: Task) -> None:
    """The first task of the lane backs off until after its expiry."""
    await stack.queue.release(task, ms(stack, 10 * HOUR))
    stack.advance_clock(4 * HOUR)


async def _parked(stack: Stack, task: Task) -> None:
    await Tubes(stack.store).create(Tube("t", retry="park"))
    await stack.queue.settle(task, result=SettleResult.RETRY, due=ms(stack, MINUTE))


async def _buried_and_kicked(stack: Stack, task: Task) -> None:
    await stack.queue.settle(task, result=SettleResult.BURY)
    await stack.queue.kick(task.task_id)


async def _lost_to_the_last(stack: Stack, task: Task) -> None:
    """The task has no attempts left: it is buried when its lease ends."""
    for _ in range(10):
        stack.advance_clock(2 * LEASE)
        await stack.take()


ENDINGS: dict[str, Ending] = {
    "done": lambda stack, task: stack.queue.settle(task),
    "failed": lambda stack, task: stack.queue.settle(task, result=SettleResult.FAILED),
    "buried": lambda stack, task: stack.queue.settle(task, result=SettleResult.BURY),
    "buried and kicked": _buried_and_kicked,
    "retry": lambda stack, task: stack.queue.settle(task, result=SettleResult.RETRY),
    "retry with delay": lambda stack, task: stack.queue.settle(task, result=SettleResult.RETRY, due=ms(stack, MINUTE)),
    "retry to the tail": _parked,
    "release": lambda stack, task: stack.queue.release(task),
    "release with delay": lambda stack, task: stack.queue.release(task, ms(stack, MINUTE)),
    "lease ends": lambda stack, task: stack.tick(),
    "lease ends after the last attempt": _lost_to_the_last,
    "cancelled and lost": _cancelled_and_lost,
    "cancelled while it backs off": _cancel_waiting,
    "buried while it backs off": _bury_waiting,
    "expired while it backs off": _expire_waiting,
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
async def test_no_way_of_ending_or_returning_a_task_leaves_its_lane_stuck(stack: Stack, ending: Ending) -> None:
    """Lanes got stuck after a release with delay, the expiry of the first task and the cancellation of a taken one."""
    await stack.queue.put("t", NewTask("holder", lane="lane", expires=stack.now() + 3 * HOUR))
    await stack.queue.put_many("t", [NewTask(str(n), lane="lane") for n in range(3)])
    await stack.queue.put("t", NewTask("deferred", lane="lane", due=stack.now() + 30 * timedelta(seconds=1)))
    (task,) = await stack.take()
    await ending(stack, task)
    await stack.audit()
    stack.advance_clock(2 * MINUTE)
    await stack.tick()
    done = [body for body in await stack.finish_all() if body != "holder"]
    assert done == ["0", "1", "2", "deferred"]
    assert "locked" not in {task.state for task in await stack.queue.inspector.select(TaskFilter(tenant="default"))}


async def test_a_task_without_a_lane_is_never_locked(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("", lane="lane") for _ in range(3)])
    ids = await stack.queue.put_many("t", [NewTask("", user="u", kind="k") for _ in range(5)])
    await stack.take(limit=3)
    free = [one for one in ids if (await lock_state(stack, one))[0] != "taken"]
    assert len(free) == 3
    assert {await lock_state(stack, one) for one in free} == {("ready", None)}
    assert len(await stack.take(limit=10)) == 3


async def test_a_claim_returns_only_tasks_that_may_be_handled(stack: Stack) -> None:
    """There is one task of each kind that must not be returned."""
    put, soon = stack.queue.put, stack.now() + MINUTE
    await put("t", NewTask("not due", due=stack.now() + HOUR))
    await put("t", NewTask("expired", expires=soon))
    await put("t", NewTask("expired in a lane", lane="expired", expires=soon))
    await stack.queue.cancel(await put("t", NewTask("cancelled")))
    await stack.queue.bury(await put("t", NewTask("buried")))
    await put("t", NewTask("first", lane="busy"))
    (first,) = [task for task in await stack.take(limit=9, lease=HOUR) if task.lane == "busy"]
    await put("t", NewTask("locked", lane="busy"))
    await put("t", NewTask("due before", due=soon))
    await put("t", NewTask("free", lane="free"))
    await put("t", NewTask("behind", lane="free"))
    stack.advance_clock(2 * MINUTE)
    assert {task.body for task in await stack.take(limit=100)} == {"due before", "free"}
    await stack.queue.settle(first)


async def test_due_tasks_are_taken_by_priority_then_in_the_order_of_the_puts(stack: Stack) -> None:
    """As if they had been ready from the start."""
    due = stack.now() + MINUTE
    for body, priority, when in [("a", 5, due + MINUTE), ("calm", 9, due), ("urgent", 0, due), ("b", 5, due)]:
        await stack.queue.put("t", NewTask(body, priority=priority, due=when))
    await stack.queue.put("t", NewTask("c", priority=5))
    assert await stack.finish_all() == ["c"]
    await stack.queue.put("t", NewTask("d", priority=5))
    stack.advance_clock(3 * MINUTE)
    assert await stack.finish_all() == ["urgent", "a", "b", "d", "calm"]


async def test_a_put_does_not_overtake_tasks_of_its_lane_that_fell_due_without_a_worker(stack: Stack) -> None:
    """Only claims promoted tasks, so after an hour without workers a later put stood before the task that was due."""
    put, soon = stack.queue.put, stack.now() + timedelta(milliseconds=200)
    first = await put("t", NewTask("due first", lane="lane", due=soon))
    await put("t", NewTask("due then", lane="lane", due=soon + timedelta(milliseconds=1)))
    await put("t", NewTask("due tomorrow", lane="lane", due=soon + 24 * HOUR))
    stack.advance_clock(MINUTE)
    later = await put("t", NewTask("put", lane="lane"))
    assert [await lock_state(stack, one) for one in (first, later)] == [("ready", None), ("locked", first)]
    await stack.audit()
    taken = []
    while tasks := await stack.take():
        taken += [task.body for task in tasks]
        await stack.queue.settle(tasks[0])
    assert taken == ["due first", "due then", "put"]


async def test_a_kick_does_not_overtake_tasks_of_its_lane_that_fell_due_without_a_worker(stack: Stack) -> None:
    buried = await stack.queue.put("t", NewTask("kicked", lane="lane"))
    await stack.queue.bury(buried)
    due = await stack.queue.put("t", NewTask("due", lane="lane", due=stack.now() + MINUTE))
    stack.advance_clock(HOUR)
    await stack.queue.kick(buried)
    assert [await lock_state(stack, one) for one in (due, buried)] == [("ready", None), ("locked", due)]
    await stack.audit()
    assert await stack.finish_all() == ["due", "kicked"]


async def test_a_put_or_a_kick_waits_its_turn_behind_more_due_tasks_than_one_script_promotes(stack: Stack) -> None:
    kicked = await stack.queue.put("t", NewTask("kicked", lane="lane"))
    await stack.queue.bury(kicked)
    await stack.queue.put_many("t", [NewTask("", tenant="others", due=stack.now() + MINUTE) for _ in range(220)])
    due = await stack.queue.put("t", NewTask("due", lane="lane", due=stack.now() + 2 * MINUTE))
    stack.advance_clock(HOUR)
    put = await stack.queue.put("t", NewTask("put", lane="lane"))
    await stack.queue.put("t", NewTask("put with a past moment", lane="lane", due=stack.now() - MINUTE))
    other = await stack.queue.put("t", NewTask("no lane"))
    await stack.queue.put_many("t", [NewTask("", tenant="others", due=stack.now() + MINUTE) for _ in range(220)])
    stack.advance_clock(2 * MINUTE)
    await stack.queue.kick(kicked)
    states = [await stack.state(one) for one in (put, kicked, due, other)]
    assert states == ["locked", "waiting", "ready", "ready"]
    await stack.audit()
    bodies = [body for body in await stack.finish_all() if body and body != "no lane"]
    assert bodies == ["due", "put", "put with a past moment", "kicked"]


async def test_a_put_promotes_a_bounded_number_of_due_tasks(stack: Stack) -> None:
    """So no put blocks the server for long; the next puts promote the rest."""
    ids = await stack.queue.put_many("t", [NewTask("", due=stack.now() + MINUTE) for _ in range(250)])
    stack.advance_clock(HOUR)
    left = []
    for n in range(4):
        left.append(await stack.redis.zcard("queue:{0}:due"))
        await stack.queue.put("t", NewTask("", lane=str(n)))
    assert left == [250, 151, 52, 0], "the tasks put in between wait there, too"
    assert {await stack.state(one) for one in ids} == {"ready"}


async def test_a_put_that_overtakes_no_task_leaves_promotion_to_the_workers(stack: Stack) -> None:
    """A task without a lane cannot overtake, and a deferred one does not enter its lane yet."""
    due = await stack.queue.put("t", NewTask("due", due=stack.now() + MINUTE))
    stack.advance_clock(HOUR)
    await stack.queue.put("t", NewTask("no lane"))
    await stack.queue.put("t", NewTask("deferred", lane="lane", due=stack.now() + MINUTE))
    assert await stack.state(due) == "waiting"
    assert await stack.finish_all() == ["due", "no lane"]


@pytest.mark.parametrize("state", ["ready", "locked", "waiting", "backing off", "buried", "taken"])
async def test_a_task_is_cancelled_by_id_in_every_state(stack: Stack, state: str) -> None:
    lane = "lane" if state in ("locked", "backing off") else ""
    before = [await stack.queue.put("t", NewTask("other", lane=lane))] if state == "locked" else []
    due = stack.now() + MINUTE if state == "waiting" else None
    task_id = await stack.queue.put("t", NewTask("cancelled", lane=lane, due=due))
    if state == "taken":
        await stack.take()
    if state == "backing off":
        (task,) = await stack.take()
        await stack.queue.settle(task, result=SettleResult.RETRY, due=ms(stack, MINUTE))
    if state == "buried":
        await stack.queue.bury(task_id)
    await stack.queue.put("t", NewTask("stays", lane=lane))
    taken = state == "taken"
    assert await stack.queue.cancel(task_id) == CancelResult(int(not taken), int(taken))
    stack.advance_clock(HOUR)
    assert await stack.finish_all() == (["other"] if before else []) + ["stays"]
    with pytest.raises(NotFound):
        await stack.queue.cancel(task_id)
