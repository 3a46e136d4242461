"""Of the repair, what no other test noticed when it was left out of a script: each found by
tests/model_checking/mutate.py.

That the audit is clean afterwards is not enough: it also is when the repair throws away what it should have kept.
"""

from datetime import timedelta

import pytest

from core.audit.audit import Audit
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState, Status
from core.queue.queue import NewTask
from core.redis.keys import KEYS
from tests.model_checking.recorded_log import items
from tests.support.stack import HOUR, TENANT, Stack, people

pytestmark = pytest.mark.row("K-44")
DAY_MS = 24 * 3_600_000


def at(name: str, *parts: str) -> str:
    return KEYS[name].at(0, *parts)


async def mended(stack: Stack) -> list[str]:
    """What repairs of everything say that they did; afterwards all is in order."""
    told: list[str] = []
    for _ in range(3):
        audit = Audit(stack.store)
        told += [what async for violation in audit.find() for what in await audit.mend(violation)]
    await stack.audit()
    return told


async def finished(stack: Stack) -> HistoryKey:
    key = (await stack.deliver(*people(2))).key
    for task in await stack.take("echo"):
        await stack.queue.settle(task, outcomes=items(task, Status.SENT))
    return key


async def test_what_is_in_order_is_left_as_it_is(stack: Stack) -> None:
    """Every script of the repair, on every state: nothing is done."""
    queue, run = stack.queue, stack.store.run
    await stack.redis.hset(at("options"), "kept:keep_ms", 3_600_000)
    kept = await queue.put("kept", "", kind="k")
    for task in await stack.take("kept"):
        await queue.settle(task)
    names = {
        "taken": await queue.put("t", "", lane="x", kind="k"),
        "locked": await queue.put("t", "", lane="x"),
        "ready": await queue.put("t", "", priority=9, expires=stack.now() + HOUR),
        "buried": await queue.put("t", "", lane="y"),
        "waiting": await queue.put("t", "", lane="z", due=stack.now() + HOUR),
        "offered": await queue.put("t", "", lane="o", priority=9),
        "kept": kept,
    }
    (held,) = await stack.take()
    assert held.name == names["taken"]
    await queue.bury(names["buried"])
    stack.passes(timedelta(minutes=1))
    for name in names.values():
        assert await run("repair_task", 0, name.partition(".")[2]) == []
    for lane in "xyzo":
        assert await run("repair_lane", 0, "t", lane, "") == []
    for member in ("@o", names["ready"].partition(".")[2]):
        assert await run("repair_offer", 0, "t", "default", member) == []
    assert await run("repair_tenant", 0, "t", "default") == []
    assert await run("repair_tenant", 0, "t", "nobody") == []
    assert await run("repair_kind", 0, "k") == []
    assert await run("repair_index", 0, at("finished"), 1, kept.partition(".")[2]) == []
    assert await run("repair_index", 0, at("lease"), 0, held.id) == []
    keys = [await finished(stack), (await stack.deliver(*people(1), deliver_at=stack.now() + HOUR)).key]
    keys.append((await stack.deliver(*people(1))).key)
    for key in keys:
        assert await run("repair_history", 0, TENANT, key.suffix) == []


async def test_a_delivery_that_left_the_list_is_listed_again_and_not_forgotten(stack: Stack) -> None:
    key = await finished(stack)
    await stack.redis.zrem(at("listed", TENANT), key.suffix)
    assert await mended(stack) == ["put into the list"]
    assert (await stack.history(key)).state is DeliveryState.FINISHED


async def test_what_lost_its_end_gets_that_of_its_delivery(stack: Stack) -> None:
    key = await finished(stack)
    member = f"{TENANT}|{key.suffix}"
    drop_at = (await stack.redis.zscore(at("retained"), member)) or 0
    await stack.redis.persist(at("outcomes", key.suffix))
    stack.passes(HOUR)
    assert await mended(stack) == ["given an end"]
    assert await stack.redis.zscore(at("retained"), member) == drop_at, "its retention runs on"
    assert await stack.redis.pexpiretime(at("outcomes", key.suffix)) == drop_at + DAY_MS


async def test_a_delivery_that_left_the_retained_is_kept_as_long_as_the_installation_says(stack: Stack) -> None:
    await stack.redis.hset(at("settings"), "retention_ms", 2 * DAY_MS)
    now = (await stack.claim(limit=0)).now
    key = await finished(stack)
    member = f"{TENANT}|{key.suffix}"
    for _ in range(2):
        kept = ((await stack.redis.zscore(at("retained"), member)) or 0) - now
        assert 2 * DAY_MS <= kept < 2 * DAY_MS + 60_000
        await stack.redis.zrem(at("retained"), member)
        assert await mended(stack) == ["put into the retained"]


@pytest.mark.parametrize("damage", ["wrong", "gone"])
async def test_the_marks_of_a_finished_delivery_are_counted_anew_and_still_have_its_end(
    stack: Stack, damage: str
) -> None:
    key = await finished(stack)
    reached = at("reached", key.suffix)
    ends = await stack.redis.pexpiretime(reached)
    if damage == "wrong":
        await stack.redis.setbit(reached, 1, 0)
    else:
        await stack.redis.delete(reached)
    assert await mended(stack) == ["counted anew"]
    assert abs(await stack.redis.pexpiretime(reached) - ends) < 1000


async def test_a_deferred_task_that_stands_in_a_lane_leaves_it_to_who_is_at_work(stack: Stack) -> None:
    deferred = (await stack.queue.put("t", "later", lane="x", due=stack.now() + HOUR)).partition(".")[2]
    await stack.queue.put("t", "now", lane="x")
    (held,) = await stack.take()
    await stack.redis.zadd(at("lane", "t", "x"), {deferred: 1})
    await mended(stack)
    assert await stack.redis.hget(at("front", "t"), "x") == held.id
    assert await stack.redis.zrange(at("lane", "t", "x"), 0, -1) == []


async def test_who_is_at_work_is_put_first_again_and_who_stood_there_behind_him(stack: Stack) -> None:
    first = (await stack.queue.put("t", "first", lane="x")).partition(".")[2]
    second = (await stack.queue.put("t", "second", lane="x")).partition(".")[2]
    third = (await stack.queue.put("t", "third", lane="x")).partition(".")[2]
    (held,) = await stack.take()
    assert held.id == first
    await stack.redis.hset(at("front", "t"), "x", second)
    await stack.redis.zrem(at("lane", "t", "x"), second)
    await stack.store.run("repair_task", 0, first)
    assert await stack.redis.zrange(at("lane", "t", "x"), 0, -1) == [second, third]
    await mended(stack)
    assert await stack.redis.hget(at("front", "t"), "x") == first
    assert await stack.queue.settle(held) == "done"
    assert await stack.finish_all() == ["second", "third"]


@pytest.mark.parametrize("lane_first", [False, True])
async def test_who_stood_first_and_was_lost_is_before_the_others_again(stack: Stack, lane_first: bool) -> None:
    """Whether the repair comes to the task or to the lane first, where the next one was let up meanwhile."""
    lost = (await stack.queue.put("t", "first", lane="x")).partition(".")[2]
    await stack.queue.put_many("t", [NewTask("second", lane="x"), NewTask("third", lane="x")])
    await stack.redis.hdel(at("front", "t"), "x")
    if lane_first:
        await stack.store.run("repair_lane", 0, "t", "x", "")
    else:
        await stack.store.run("repair_task", 0, lost)
    await mended(stack)
    assert await stack.finish_all() == ["first", "second", "third"]


async def test_of_two_who_lost_their_place_the_one_at_work_has_it(stack: Stack) -> None:
    """Who backed off can wait as one who was put off; nothing is begun beside who is taken."""
    backing = await stack.queue.put("t", "backing off", lane="x")
    (held,) = await stack.take()
    await stack.queue.settle(held, result="retry", due=int((stack.now() + HOUR).timestamp() * 1000))
    await stack.redis.hdel(at("front", "t"), "x")
    await stack.queue.put("t", "taken", lane="x")
    (taken,) = await stack.take()
    await mended(stack)
    assert await stack.redis.hget(at("front", "t"), "x") == taken.id
    assert (await stack.queue.peek(backing))["state"] == "waiting"
    assert await stack.queue.settle(taken) == "done"
    stack.passes(HOUR)
    assert await stack.finish_all() == ["backing off"]


async def test_who_backs_off_and_lost_his_lane_gets_it_back_at_his_place(stack: Stack) -> None:
    await stack.queue.put("t", "first", lane="x")
    await stack.queue.put("t", "second", lane="x")
    (held,) = await stack.take()
    due = int((stack.now() + HOUR).timestamp() * 1000)
    await stack.queue.settle(held, result="retry", due=due)
    await stack.redis.hdel(at("front", "t"), "x")
    await mended(stack)
    assert await stack.take() == [], "it is still his turn"
    stack.passes(HOUR)
    assert await stack.finish_all() == ["first", "second"]
