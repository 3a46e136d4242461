"""Lanes, row by row: who is locked behind whom, and that nothing leaves a lane stuck."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from core.errors import NotFound
from core.queue.queue import NewTask, Task, TaskFilter
from core.queue.tubes import Tube, Tubes
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, LEASE, Stack

pytestmark = on_both_servers

MINUTE = timedelta(minutes=1)
Ending = Callable[[Stack, Task], Awaitable[Any]]


def ms(stack: Stack, ahead: timedelta) -> int:
    return int((stack.now() + ahead).timestamp() * 1000)


async def seen(stack: Stack, task_id: str) -> tuple[str, str | None]:
    told = await stack.queue.peek(task_id)
    return told["state"], told.get("waits_for")


@pytest.mark.row("K-14")
async def test_who_waits_says_for_whom_also_while_that_one_backs_off(stack: Stack) -> None:
    first, second, third = await stack.queue.put_many("t", [NewTask("", lane="lane") for _ in range(3)])
    assert [await seen(stack, one) for one in (first, second, third)] == [
        ("ready", None),
        ("locked", first),
        ("locked", first),
    ]
    (task,) = await stack.take()
    assert await seen(stack, second) == ("locked", first)
    await stack.queue.settle(task, result="retry", due=ms(stack, MINUTE))
    assert await seen(stack, first) == ("waiting", None)
    assert await seen(stack, second) == ("locked", first)
    await stack.queue.cancel(first)
    assert [await seen(stack, one) for one in (second, third)] == [("ready", None), ("locked", second)]
    (listed,) = await stack.queue.select(TaskFilter(lane="lane", state="locked"))
    assert (listed["id"], listed["waits_for"]) == (third, second)


@pytest.mark.row("K-15")
@pytest.mark.parametrize("how", ["done", "buried", "cancelled", "failed"])
async def test_the_end_of_the_holder_frees_exactly_the_oldest_of_its_lane(stack: Stack, how: str) -> None:
    ids = await stack.queue.put_many("t", [NewTask(str(n), lane="lane", priority=9 - n) for n in range(4)])
    (task,) = await stack.take()
    if how == "cancelled":
        await stack.queue.cancel(ids[0])
    result = {"buried": "bury", "cancelled": "retry"}.get(how, how)
    assert await stack.queue.settle(task, result=result) == how
    await stack.audit()
    assert [await seen(stack, one) for one in ids[1:]] == [("ready", None), ("locked", ids[1]), ("locked", ids[1])]
    assert [task.body for task in await stack.take(limit=10)] == ["1"]


@pytest.mark.row("K-16")
@pytest.mark.parametrize("backs_off", [False, True])
async def test_what_falls_due_while_its_lane_is_busy_is_locked_and_runs_in_its_turn(
    stack: Stack, backs_off: bool
) -> None:
    deferred = await stack.queue.put("t", "deferred", lane="lane", due=stack.now() + MINUTE)
    holder, _ = await stack.queue.put_many("t", [NewTask("holder", lane="lane"), NewTask("behind", lane="lane")])
    (task,) = await stack.take(lease=HOUR)
    if backs_off:
        await stack.queue.settle(task, result="retry", due=ms(stack, HOUR / 2))
    stack.passes(2 * MINUTE)
    await stack.tick()
    assert await seen(stack, deferred) == ("locked", holder)
    assert await stack.take(limit=10) == []
    await stack.queue.put("t", "put later", lane="lane")
    if backs_off:
        stack.passes(HOUR / 2)
    else:
        await stack.queue.release(task)
    assert await stack.finish_all() == ["holder", "behind", "deferred", "put later"]


async def _bury_waiting(stack: Stack, task: Task) -> None:
    await stack.queue.release(task, ms(stack, HOUR))
    await stack.queue.bury(task.name)


async def _cancel_waiting(stack: Stack, task: Task) -> None:
    await stack.queue.settle(task, result="retry", due=ms(stack, HOUR))
    await stack.queue.cancel(task.name)


async def _cancelled_and_lost(stack: Stack, task: Task) -> None:
    """The kill of a taken task, whose worker does not hear of it any more."""
    await stack.queue.cancel(task.name)
    stack.passes(2 * LEASE)


async def _expire_waiting(stack: Stack, task: Task) -> None:
    """The expiry of the holder: it backs off, and is not taken again in time."""
    await stack.queue.release(task, ms(stack, 10 * HOUR))
    stack.passes(4 * HOUR)


async def _parked(stack: Stack, task: Task) -> None:
    await Tubes(stack.store).create(Tube("t", retry="park"))
    await stack.queue.settle(task, result="retry", due=ms(stack, MINUTE))


async def _buried_and_kicked(stack: Stack, task: Task) -> None:
    await stack.queue.settle(task, result="bury")
    await stack.queue.kick(task.name)


async def _lost_to_the_last(stack: Stack, task: Task) -> None:
    """Its attempts are used up: it is buried when its lease is over."""
    for _ in range(10):
        stack.passes(2 * LEASE)
        await stack.take()


ENDINGS: dict[str, Ending] = {
    "done": lambda stack, task: stack.queue.settle(task),
    "failed": lambda stack, task: stack.queue.settle(task, result="failed"),
    "buried": lambda stack, task: stack.queue.settle(task, result="bury"),
    "buried and kicked": _buried_and_kicked,
    "retry": lambda stack, task: stack.queue.settle(task, result="retry"),
    "retry with delay": lambda stack, task: stack.queue.settle(task, result="retry", due=ms(stack, MINUTE)),
    "retry to the tail": _parked,
    "release": lambda stack, task: stack.queue.release(task),
    "release with delay": lambda stack, task: stack.queue.release(task, ms(stack, MINUTE)),
    "lease over": lambda stack, task: stack.tick(),
    "lease over for the last time": _lost_to_the_last,
    "killed and lost": _cancelled_and_lost,
    "killed while it backs off": _cancel_waiting,
    "buried while it backs off": _bury_waiting,
    "expired while it backs off": _expire_waiting,
}


@pytest.mark.row("K-17")
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
async def test_no_way_of_ending_or_returning_a_task_leaves_its_lane_stuck(stack: Stack, ending: Ending) -> None:
    """The original got stuck after release with delay, expiry of the holder and the kill of a taken task."""
    await stack.queue.put("t", "holder", lane="lane", expires=stack.now() + 3 * HOUR)
    await stack.queue.put_many("t", [NewTask(str(n), lane="lane") for n in range(3)])
    await stack.queue.put("t", "deferred", lane="lane", due=stack.now() + 30 * timedelta(seconds=1))
    (task,) = await stack.take()
    await ending(stack, task)
    await stack.audit()
    stack.passes(2 * MINUTE)
    await stack.tick()
    done = [body for body in await stack.finish_all() if body != "holder"]
    assert done == ["0", "1", "2", "deferred"]
    assert "locked" not in {told["state"] for told in await stack.queue.select(TaskFilter(tenant="default"))}


@pytest.mark.row("K-18")
async def test_a_task_without_a_lane_is_ready_whatever_is_busy(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("", lane="lane") for _ in range(3)])
    ids = await stack.queue.put_many("t", [NewTask("", user="u", kind="k") for _ in range(5)])
    await stack.take(limit=3)
    free = [one for one in ids if (await seen(stack, one))[0] != "taken"]
    assert len(free) == 3
    assert {await seen(stack, one) for one in free} == {("ready", None)}
    assert len(await stack.take(limit=10)) == 3


@pytest.mark.row("K-19")
async def test_whatever_is_taken_may_be_processed(stack: Stack) -> None:
    """One of each that may not be: nothing of it comes out, however much is asked for."""
    put, soon = stack.queue.put, stack.now() + MINUTE
    await put("t", "not due", due=stack.now() + HOUR)
    await put("t", "expired", expires=soon)
    await put("t", "expired in a lane", lane="expired", expires=soon)
    await stack.queue.cancel(await put("t", "cancelled"))
    await stack.queue.bury(await put("t", "buried"))
    await put("t", "holder", lane="held")
    (holder,) = [task for task in await stack.take(limit=9, lease=HOUR) if task.lane == "held"]
    await put("t", "locked", lane="held")
    await put("t", "due before", due=soon)
    await put("t", "free", lane="free")
    await put("t", "behind", lane="free")
    stack.passes(2 * MINUTE)
    assert {task.body for task in await stack.take(limit=100)} == {"due before", "free"}
    await stack.queue.settle(holder)


@pytest.mark.row("K-06", "K-21")
async def test_what_is_due_follows_the_order_rules(stack: Stack) -> None:
    """Priority, then the order of the puts, as if it had been there all the time."""
    due = stack.now() + MINUTE
    for body, priority, when in [("a", 5, due + MINUTE), ("calm", 9, due), ("urgent", 0, due), ("b", 5, due)]:
        await stack.queue.put("t", body, priority=priority, due=when)
    await stack.queue.put("t", "c", priority=5)
    assert await stack.finish_all() == ["c"]
    await stack.queue.put("t", "d", priority=5)
    stack.passes(3 * MINUTE)
    assert await stack.finish_all() == ["urgent", "a", "b", "d", "calm"]


@pytest.mark.row("K-06", "K-12", "K-41")
async def test_what_fell_due_without_a_worker_is_not_overtaken_by_what_is_put_then(stack: Stack) -> None:
    """Only claims promoted, so after an hour without workers the later put stood before the one that was due."""
    put, soon = stack.queue.put, stack.now() + timedelta(milliseconds=200)
    first = await put("t", "due first", lane="lane", due=soon)
    await put("t", "due then", lane="lane", due=soon + timedelta(milliseconds=1))
    await put("t", "due tomorrow", lane="lane", due=soon + 24 * HOUR)
    stack.passes(MINUTE)
    later = await put("t", "put", lane="lane")
    assert [await seen(stack, one) for one in (first, later)] == [("ready", None), ("locked", first)]
    await stack.audit()
    taken = []
    while tasks := await stack.take():
        taken += [task.body for task in tasks]
        await stack.queue.settle(tasks[0])
    assert taken == ["due first", "due then", "put"]


@pytest.mark.row("K-34", "K-41")
async def test_what_fell_due_without_a_worker_is_not_overtaken_by_what_is_kicked_then(stack: Stack) -> None:
    buried = await stack.queue.put("t", "kicked", lane="lane")
    await stack.queue.bury(buried)
    due = await stack.queue.put("t", "due", lane="lane", due=stack.now() + MINUTE)
    stack.passes(HOUR)
    await stack.queue.kick(buried)
    assert [await seen(stack, one) for one in (due, buried)] == [("ready", None), ("locked", due)]
    await stack.audit()
    assert await stack.finish_all() == ["due", "kicked"]


@pytest.mark.row("K-06", "K-34", "K-41")
async def test_behind_more_than_a_page_of_what_fell_due_a_put_or_a_kick_waits_its_turn(stack: Stack) -> None:
    kicked = await stack.queue.put("t", "kicked", lane="lane")
    await stack.queue.bury(kicked)
    await stack.queue.put_many("t", [NewTask("", tenant="others", due=stack.now() + MINUTE) for _ in range(220)])
    due = await stack.queue.put("t", "due", lane="lane", due=stack.now() + 2 * MINUTE)
    stack.passes(HOUR)
    put = await stack.queue.put("t", "put", lane="lane")
    await stack.queue.put("t", "put with a past moment", lane="lane", due=stack.now() - MINUTE)
    other = await stack.queue.put("t", "no lane")
    await stack.queue.put_many("t", [NewTask("", tenant="others", due=stack.now() + MINUTE) for _ in range(220)])
    stack.passes(2 * MINUTE)
    await stack.queue.kick(kicked)
    states = [await stack.state(one) for one in (put, kicked, due, other)]
    assert states == ["locked", "waiting", "ready", "ready"]
    await stack.audit()
    bodies = [body for body in await stack.finish_all() if body and body != "no lane"]
    assert bodies == ["due", "put", "put with a past moment", "kicked"]


@pytest.mark.row("K-12", "K-41")
async def test_a_put_promotes_no_more_than_a_page_of_what_is_due(stack: Stack) -> None:
    """So that no put holds the server for long: what is over is promoted by the next ones."""
    ids = await stack.queue.put_many("t", [NewTask("", due=stack.now() + MINUTE) for _ in range(250)])
    stack.passes(HOUR)
    left = []
    for n in range(4):
        left.append(await stack.redis.zcard("queue:{0}:due"))
        await stack.queue.put("t", "", lane=str(n))
    assert left == [250, 151, 52, 0], "and what was put in between waits there, too"
    assert {await stack.state(one) for one in ids} == {"ready"}


@pytest.mark.row("K-41")
async def test_a_put_that_overtakes_nobody_leaves_time_to_the_workers(stack: Stack) -> None:
    """Without a lane the order is that of the puts whatever was due when, and what is deferred enters no lane yet."""
    due = await stack.queue.put("t", "due", due=stack.now() + MINUTE)
    stack.passes(HOUR)
    await stack.queue.put("t", "no lane")
    await stack.queue.put("t", "deferred", lane="lane", due=stack.now() + MINUTE)
    assert await stack.state(due) == "waiting"
    assert await stack.finish_all() == ["due", "no lane"]


@pytest.mark.row("K-08")
@pytest.mark.parametrize("state", ["ready", "locked", "waiting", "backing off", "buried", "taken"])
async def test_cancel_by_id_in_every_state(stack: Stack, state: str) -> None:
    lane = "lane" if state in ("locked", "backing off") else ""
    before = [await stack.queue.put("t", "other", lane=lane)] if state == "locked" else []
    due = stack.now() + MINUTE if state == "waiting" else None
    task_id = await stack.queue.put("t", "cancelled", lane=lane, due=due)
    if state == "taken":
        await stack.take()
    if state == "backing off":
        (task,) = await stack.take()
        await stack.queue.settle(task, result="retry", due=ms(stack, MINUTE))
    if state == "buried":
        await stack.queue.bury(task_id)
    await stack.queue.put("t", "stays", lane=lane)
    taken = state == "taken"
    assert await stack.queue.cancel(task_id) == {"cancelled": int(not taken), "flagged": int(taken)}
    stack.passes(HOUR)
    assert await stack.finish_all() == (["other"] if before else []) + ["stays"]
    with pytest.raises(NotFound):
        await stack.queue.cancel(task_id)
