"""Lanes, row by row: who is locked behind whom, and that nothing leaves a lane stuck."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from core.errors import NotFound
from core.queue import Draft, Selection, Task
from core.tubes import Tube, Tubes
from tests.core.house import HOUR, LEASE, House
from tests.servers import on_both_servers

pytestmark = on_both_servers

MINUTE = timedelta(minutes=1)
Ending = Callable[[House, Task], Awaitable[Any]]


def ms(house: House, ahead: timedelta) -> int:
    return int((house.now() + ahead).timestamp() * 1000)


async def seen(house: House, task_id: str) -> tuple[str, str | None]:
    told = await house.queue.peek(task_id)
    return told["state"], told.get("waits_for")


@pytest.mark.row("K-14")
async def test_who_waits_says_for_whom_also_while_that_one_backs_off(house: House) -> None:
    first, second, third = await house.queue.put_many("t", [Draft("", lane="lane") for _ in range(3)])
    assert [await seen(house, one) for one in (first, second, third)] == [
        ("ready", None),
        ("locked", first),
        ("locked", first),
    ]
    (task,) = await house.take()
    assert await seen(house, second) == ("locked", first)
    await house.queue.settle(task, result="retry", due=ms(house, MINUTE))
    assert await seen(house, first) == ("waiting", None)
    assert await seen(house, second) == ("locked", first)
    await house.queue.cancel(first)
    assert [await seen(house, one) for one in (second, third)] == [("ready", None), ("locked", second)]
    (listed,) = await house.queue.select(Selection(lane="lane", state="locked"))
    assert (listed["id"], listed["waits_for"]) == (third, second)


@pytest.mark.row("K-15")
@pytest.mark.parametrize("how", ["done", "buried", "cancelled", "failed"])
async def test_the_end_of_the_holder_frees_exactly_the_oldest_of_its_lane(house: House, how: str) -> None:
    ids = await house.queue.put_many("t", [Draft(str(n), lane="lane", priority=9 - n) for n in range(4)])
    (task,) = await house.take()
    if how == "cancelled":
        await house.queue.cancel(ids[0])
    result = {"buried": "bury", "cancelled": "retry"}.get(how, how)
    assert await house.queue.settle(task, result=result) == how
    await house.audit()
    assert [await seen(house, one) for one in ids[1:]] == [("ready", None), ("locked", ids[1]), ("locked", ids[1])]
    assert [task.body for task in await house.take(limit=10)] == ["1"]


@pytest.mark.row("K-16")
@pytest.mark.parametrize("backs_off", [False, True])
async def test_what_falls_due_while_its_lane_is_busy_is_locked_and_runs_in_its_turn(
    house: House, backs_off: bool
) -> None:
    deferred = await house.queue.put("t", "deferred", lane="lane", due=house.now() + MINUTE)
    holder, _ = await house.queue.put_many("t", [Draft("holder", lane="lane"), Draft("behind", lane="lane")])
    (task,) = await house.take(lease=HOUR)
    if backs_off:
        await house.queue.settle(task, result="retry", due=ms(house, HOUR / 2))
    house.passes(2 * MINUTE)
    await house.tick()
    assert await seen(house, deferred) == ("locked", holder)
    assert await house.take(limit=10) == []
    await house.queue.put("t", "put later", lane="lane")
    if backs_off:
        house.passes(HOUR / 2)
    else:
        await house.queue.release(task)
    assert await house.finish_all() == ["holder", "behind", "deferred", "put later"]


async def _bury_waiting(house: House, task: Task) -> None:
    await house.queue.release(task, ms(house, HOUR))
    await house.queue.bury(task.name)


async def _cancel_waiting(house: House, task: Task) -> None:
    await house.queue.settle(task, result="retry", due=ms(house, HOUR))
    await house.queue.cancel(task.name)


async def _cancelled_and_lost(house: House, task: Task) -> None:
    """The kill of a taken task, whose worker does not hear of it any more."""
    await house.queue.cancel(task.name)
    house.passes(2 * LEASE)


async def _expire_waiting(house: House, task: Task) -> None:
    """The expiry of the holder: it backs off, and is not taken again in time."""
    await house.queue.release(task, ms(house, 10 * HOUR))
    house.passes(4 * HOUR)


async def _parked(house: House, task: Task) -> None:
    await Tubes(house.store).create(Tube("t", retry="park"))
    await house.queue.settle(task, result="retry", due=ms(house, MINUTE))


async def _buried_and_kicked(house: House, task: Task) -> None:
    await house.queue.settle(task, result="bury")
    await house.queue.kick(task.name)


async def _lost_to_the_last(house: House, task: Task) -> None:
    """Its attempts are used up: it is buried when its lease is over."""
    for _ in range(10):
        house.passes(2 * LEASE)
        await house.take()


ENDINGS: dict[str, Ending] = {
    "done": lambda house, task: house.queue.settle(task),
    "failed": lambda house, task: house.queue.settle(task, result="failed"),
    "buried": lambda house, task: house.queue.settle(task, result="bury"),
    "buried and kicked": _buried_and_kicked,
    "retry": lambda house, task: house.queue.settle(task, result="retry"),
    "retry with delay": lambda house, task: house.queue.settle(task, result="retry", due=ms(house, MINUTE)),
    "retry to the tail": _parked,
    "release": lambda house, task: house.queue.release(task),
    "release with delay": lambda house, task: house.queue.release(task, ms(house, MINUTE)),
    "lease over": lambda house, task: house.tick(),
    "lease over for the last time": _lost_to_the_last,
    "killed and lost": _cancelled_and_lost,
    "killed while it backs off": _cancel_waiting,
    "buried while it backs off": _bury_waiting,
    "expired while it backs off": _expire_waiting,
}


@pytest.mark.row("K-17")
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
async def test_no_way_of_ending_or_returning_a_task_leaves_its_lane_stuck(house: House, ending: Ending) -> None:
    """The original got stuck after release with delay, expiry of the holder and the kill of a taken task."""
    await house.queue.put("t", "holder", lane="lane", expires=house.now() + 3 * HOUR)
    await house.queue.put_many("t", [Draft(str(n), lane="lane") for n in range(3)])
    await house.queue.put("t", "deferred", lane="lane", due=house.now() + 30 * timedelta(seconds=1))
    (task,) = await house.take()
    await ending(house, task)
    await house.audit()
    house.passes(2 * MINUTE)
    await house.tick()
    done = [body for body in await house.finish_all() if body != "holder"]
    assert done == ["0", "1", "2", "deferred"]
    assert "locked" not in {told["state"] for told in await house.queue.select(Selection(tenant="default"))}


@pytest.mark.row("K-18")
async def test_a_task_without_a_lane_is_ready_whatever_is_busy(house: House) -> None:
    await house.queue.put_many("t", [Draft("", lane="lane") for _ in range(3)])
    ids = await house.queue.put_many("t", [Draft("", user="u", kind="k") for _ in range(5)])
    await house.take(limit=3)
    free = [one for one in ids if (await seen(house, one))[0] != "taken"]
    assert len(free) == 3
    assert {await seen(house, one) for one in free} == {("ready", None)}
    assert len(await house.take(limit=10)) == 3


@pytest.mark.row("K-19")
async def test_whatever_is_taken_may_be_processed(house: House) -> None:
    """One of each that may not be: nothing of it comes out, however much is asked for."""
    put, soon = house.queue.put, house.now() + MINUTE
    await put("t", "not due", due=house.now() + HOUR)
    await put("t", "expired", expires=soon)
    await put("t", "expired in a lane", lane="expired", expires=soon)
    await house.queue.cancel(await put("t", "cancelled"))
    await house.queue.bury(await put("t", "buried"))
    await put("t", "holder", lane="held")
    (holder,) = [task for task in await house.take(limit=9, lease=HOUR) if task.lane == "held"]
    await put("t", "locked", lane="held")
    await put("t", "due before", due=soon)
    await put("t", "free", lane="free")
    await put("t", "behind", lane="free")
    house.passes(2 * MINUTE)
    assert {task.body for task in await house.take(limit=100)} == {"due before", "free"}
    await house.queue.settle(holder)


@pytest.mark.row("K-06", "K-21")
async def test_what_is_due_follows_the_order_rules(house: House) -> None:
    """Priority, then the order of the puts, as if it had been there all the time."""
    due = house.now() + MINUTE
    for body, priority, when in [("a", 5, due + MINUTE), ("calm", 9, due), ("urgent", 0, due), ("b", 5, due)]:
        await house.queue.put("t", body, priority=priority, due=when)
    await house.queue.put("t", "c", priority=5)
    assert await house.finish_all() == ["c"]
    await house.queue.put("t", "d", priority=5)
    house.passes(3 * MINUTE)
    assert await house.finish_all() == ["urgent", "a", "b", "d", "calm"]


@pytest.mark.row("K-06", "K-12", "K-41")
async def test_what_fell_due_without_a_worker_is_not_overtaken_by_what_is_put_then(house: House) -> None:
    """Only claims promoted, so after an hour without workers the later put stood before the one that was due."""
    put, soon = house.queue.put, house.now() + timedelta(milliseconds=200)
    first = await put("t", "due first", lane="lane", due=soon)
    await put("t", "due then", lane="lane", due=soon + timedelta(milliseconds=1))
    await put("t", "due tomorrow", lane="lane", due=soon + 24 * HOUR)
    house.passes(MINUTE)
    later = await put("t", "put", lane="lane")
    assert [await seen(house, one) for one in (first, later)] == [("ready", None), ("locked", first)]
    await house.audit()
    taken = []
    while tasks := await house.take():
        taken += [task.body for task in tasks]
        await house.queue.settle(tasks[0])
    assert taken == ["due first", "due then", "put"]


@pytest.mark.row("K-34", "K-41")
async def test_what_fell_due_without_a_worker_is_not_overtaken_by_what_is_kicked_then(house: House) -> None:
    buried = await house.queue.put("t", "kicked", lane="lane")
    await house.queue.bury(buried)
    due = await house.queue.put("t", "due", lane="lane", due=house.now() + MINUTE)
    house.passes(HOUR)
    await house.queue.kick(buried)
    assert [await seen(house, one) for one in (due, buried)] == [("ready", None), ("locked", due)]
    await house.audit()
    assert await house.finish_all() == ["due", "kicked"]


@pytest.mark.row("K-06", "K-34", "K-41")
async def test_behind_more_than_a_page_of_what_fell_due_a_put_or_a_kick_waits_its_turn(house: House) -> None:
    kicked = await house.queue.put("t", "kicked", lane="lane")
    await house.queue.bury(kicked)
    await house.queue.put_many("t", [Draft("", tenant="others", due=house.now() + MINUTE) for _ in range(220)])
    due = await house.queue.put("t", "due", lane="lane", due=house.now() + 2 * MINUTE)
    house.passes(HOUR)
    put = await house.queue.put("t", "put", lane="lane")
    await house.queue.put("t", "put with a past moment", lane="lane", due=house.now() - MINUTE)
    other = await house.queue.put("t", "no lane")
    await house.queue.put_many("t", [Draft("", tenant="others", due=house.now() + MINUTE) for _ in range(220)])
    house.passes(2 * MINUTE)
    await house.queue.kick(kicked)
    states = [await house.state(one) for one in (put, kicked, due, other)]
    assert states == ["locked", "waiting", "ready", "ready"]
    await house.audit()
    bodies = [body for body in await house.finish_all() if body and body != "no lane"]
    assert bodies == ["due", "put", "put with a past moment", "kicked"]


@pytest.mark.row("K-12", "K-41")
async def test_a_put_promotes_no_more_than_a_page_of_what_is_due(house: House) -> None:
    """So that no put holds the server for long: what is over is promoted by the next ones."""
    ids = await house.queue.put_many("t", [Draft("", due=house.now() + MINUTE) for _ in range(250)])
    house.passes(HOUR)
    left = []
    for n in range(4):
        left.append(await house.redis.zcard("queue:{0}:due"))
        await house.queue.put("t", "", lane=str(n))
    assert left == [250, 151, 52, 0], "and what was put in between waits there, too"
    assert {await house.state(one) for one in ids} == {"ready"}


@pytest.mark.row("K-41")
async def test_a_put_that_overtakes_nobody_leaves_time_to_the_workers(house: House) -> None:
    """Without a lane the order is that of the puts whatever was due when, and what is deferred enters no lane yet."""
    due = await house.queue.put("t", "due", due=house.now() + MINUTE)
    house.passes(HOUR)
    await house.queue.put("t", "no lane")
    await house.queue.put("t", "deferred", lane="lane", due=house.now() + MINUTE)
    assert await house.state(due) == "waiting"
    assert await house.finish_all() == ["due", "no lane"]


@pytest.mark.row("K-08")
@pytest.mark.parametrize("state", ["ready", "locked", "waiting", "backing off", "buried", "taken"])
async def test_cancel_by_id_in_every_state(house: House, state: str) -> None:
    lane = "lane" if state in ("locked", "backing off") else ""
    before = [await house.queue.put("t", "other", lane=lane)] if state == "locked" else []
    due = house.now() + MINUTE if state == "waiting" else None
    task_id = await house.queue.put("t", "cancelled", lane=lane, due=due)
    if state == "taken":
        await house.take()
    if state == "backing off":
        (task,) = await house.take()
        await house.queue.settle(task, result="retry", due=ms(house, MINUTE))
    if state == "buried":
        await house.queue.bury(task_id)
    await house.queue.put("t", "stays", lane=lane)
    taken = state == "taken"
    assert await house.queue.cancel(task_id) == {"cancelled": int(not taken), "flagged": int(taken)}
    house.passes(HOUR)
    assert await house.finish_all() == (["other"] if before else []) + ["stays"]
    with pytest.raises(NotFound):
        await house.queue.cancel(task_id)
