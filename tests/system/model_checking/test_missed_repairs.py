"""Regression tests for mutants of the repair scripts that survived all other tests (`mutate.py`).

A clean audit afterwards is not enough: it is also clean when the repair deletes what it should have kept.
"""

from datetime import timedelta

import pytest

from core.audit.audit import Audit
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState, Status
from core.queue import NewTask, SettleResult
from core.redis.keys import KEYS
from tests.support.stack import HOUR, TENANT, Stack, people
from tests.system.model_checking.recorded_log import items

DAY_MS = 24 * 3_600_000


def at(name: str, *parts: str) -> str:
    return KEYS[name].at(0, *parts)


async def repaired(stack: Stack) -> list[str]:
    """Repairs everything; returns what was done. The audit is clean afterwards."""
    done: list[str] = []
    for _ in range(3):
        audit = Audit(stack.store)
        done += [what async for violation in audit.find() for what in await audit.repair(violation)]
    await stack.audit()
    return done


async def finished(stack: Stack) -> HistoryKey:
    key = (await stack.deliver(*people(2))).key
    for task in await stack.take("echo"):
        await stack.queue.settle(task, outcomes=items(task, Status.SENT))
    return key


async def test_the_repair_scripts_change_nothing_that_is_intact(stack: Stack) -> None:
    """Runs every repair script on every state."""
    queue, run = stack.queue, stack.store.run
    await stack.redis.hset(at("options"), "kept:keep_ms", 3_600_000)
    kept = await queue.put("kept", NewTask("", kind="k"))
    for task in await stack.take("kept"):
        await queue.settle(task)
    names = {
        "taken": await queue.put("t", NewTask("", lane="x", kind="k")),
        "locked": await queue.put("t", NewTask("", lane="x")),
        "ready": await queue.put("t", NewTask("", priority=9, expires=stack.now() + HOUR)),
        "buried": await queue.put("t", NewTask("", lane="y")),
        "waiting": await queue.put("t", NewTask("", lane="z", due=stack.now() + HOUR)),
        "offered": await queue.put("t", NewTask("", lane="o", priority=9)),
        "kept": kept,
    }
    (claimed,) = await stack.take()
    assert claimed.task_id == names["taken"]
    await queue.bury(names["buried"])
    stack.advance_clock(timedelta(minutes=1))
    for name in names.values():
        assert await run("repair_task", 0, name.partition(".")[2]) == []
    for lane in "xyzo":
        assert await run("repair_lane", 0, "t", lane, "") == []
    for member in ("@o", names["ready"].partition(".")[2]):
        assert await run("repair_offer", 0, "t", "default", member) == []
    assert await run("repair_tenant", 0, "t", "default") == []
    assert await run("repair_tenant", 0, "t", "unknown") == []
    assert await run("repair_kind", 0, "k") == []
    assert await run("repair_index", 0, at("finished"), 1, kept.partition(".")[2]) == []
    assert await run("repair_index", 0, at("lease"), 0, claimed.id) == []
    keys = [await finished(stack), (await stack.deliver(*people(1), deliver_at=stack.now() + HOUR)).key]
    keys.append((await stack.deliver(*people(1))).key)
    for key in keys:
        assert await run("repair_history", 0, TENANT, key.suffix) == []


async def test_a_delivery_missing_from_the_list_is_listed_again(stack: Stack) -> None:
    key = await finished(stack)
    await stack.redis.zrem(at("listed", TENANT), key.suffix)
    assert await repaired(stack) == ["added to the listed"]
    assert (await stack.history(key)).state is DeliveryState.FINISHED


async def test_a_key_without_a_ttl_gets_the_ttl_of_its_delivery(stack: Stack) -> None:
    key = await finished(stack)
    member = f"{TENANT}|{key.suffix}"
    drop_at = (await stack.redis.zscore(at("retained"), member)) or 0
    await stack.redis.persist(at("outcomes", key.suffix))
    stack.advance_clock(HOUR)
    assert await repaired(stack) == ["TTL set"]
    assert await stack.redis.zscore(at("retained"), member) == drop_at, "its retention is unchanged"
    assert await stack.redis.pexpiretime(at("outcomes", key.suffix)) == drop_at + DAY_MS


async def test_a_delivery_missing_from_the_retained_is_kept_as_long_as_the_settings_demand(stack: Stack) -> None:
    await stack.redis.hset(at("settings"), "retention_ms", 2 * DAY_MS)
    now = (await stack.claim(limit=0)).now
    key = await finished(stack)
    member = f"{TENANT}|{key.suffix}"
    for _ in range(2):
        kept = ((await stack.redis.zscore(at("retained"), member)) or 0) - now
        assert 2 * DAY_MS <= kept < 2 * DAY_MS + 60_000
        await stack.redis.zrem(at("retained"), member)
        assert await repaired(stack) == ["added to the retained"]


@pytest.mark.parametrize("damage", ["wrong", "gone"])
async def test_the_reached_bitmap_of_a_finished_delivery_is_rebuilt_with_its_ttl(stack: Stack, damage: str) -> None:
    key = await finished(stack)
    reached = at("reached", key.suffix)
    ends = await stack.redis.pexpiretime(reached)
    if damage == "wrong":
        await stack.redis.setbit(reached, 1, 0)
    else:
        await stack.redis.delete(reached)
    assert await repaired(stack) == ["recounted"]
    assert abs(await stack.redis.pexpiretime(reached) - ends) < 1000


async def test_a_deferred_task_that_is_wrongly_in_a_lane_leaves_it_to_the_taken_one(stack: Stack) -> None:
    deferred = (await stack.queue.put("t", NewTask("later", lane="x", due=stack.now() + HOUR))).partition(".")[2]
    await stack.queue.put("t", NewTask("now", lane="x"))
    (claimed,) = await stack.take()
    await stack.redis.zadd(at("lane", "t", "x"), {deferred: 1})
    await repaired(stack)
    assert await stack.redis.hget(at("head", "t"), "x") == claimed.id
    assert await stack.redis.zrange(at("lane", "t", "x"), 0, -1) == []


async def test_a_taken_task_becomes_first_again_and_the_wrong_first_goes_behind_it(stack: Stack) -> None:
    first = (await stack.queue.put("t", NewTask("first", lane="x"))).partition(".")[2]
    second = (await stack.queue.put("t", NewTask("second", lane="x"))).partition(".")[2]
    third = (await stack.queue.put("t", NewTask("third", lane="x"))).partition(".")[2]
    (claimed,) = await stack.take()
    assert claimed.id == first
    await stack.redis.hset(at("head", "t"), "x", second)
    await stack.redis.zrem(at("lane", "t", "x"), second)
    await stack.store.run("repair_task", 0, first)
    assert await stack.redis.zrange(at("lane", "t", "x"), 0, -1) == [second, third]
    await repaired(stack)
    assert await stack.redis.hget(at("head", "t"), "x") == first
    assert await stack.queue.settle(claimed) == "done"
    assert await stack.finish_all() == ["second", "third"]


@pytest.mark.parametrize("lane_first", [False, True])
async def test_a_lost_first_task_is_first_again(stack: Stack, lane_first: bool) -> None:
    """Also when the repair of the lane comes first and moves the next task up."""
    lost = (await stack.queue.put("t", NewTask("first", lane="x"))).partition(".")[2]
    await stack.queue.put_many("t", [NewTask("second", lane="x"), NewTask("third", lane="x")])
    await stack.redis.hdel(at("head", "t"), "x")
    if lane_first:
        await stack.store.run("repair_lane", 0, "t", "x", "")
    else:
        await stack.store.run("repair_task", 0, lost)
    await repaired(stack)
    assert await stack.finish_all() == ["first", "second", "third"]


async def test_of_two_tasks_without_a_place_the_taken_one_gets_it(stack: Stack) -> None:
    """A task that backs off can wait as a deferred one; no task of the lane starts beside a taken one."""
    backing = await stack.queue.put("t", NewTask("backing off", lane="x"))
    (claimed,) = await stack.take()
    await stack.queue.settle(claimed, result=SettleResult.RETRY, due=int((stack.now() + HOUR).timestamp() * 1000))
    await stack.redis.hdel(at("head", "t"), "x")
    await stack.queue.put("t", NewTask("taken", lane="x"))
    (taken,) = await stack.take()
    await repaired(stack)
    assert await stack.redis.hget(at("head", "t"), "x") == taken.id
    assert (await stack.queue.inspector.peek(backing)).state == "waiting"
    assert await stack.queue.settle(taken) == "done"
    stack.advance_clock(HOUR)
    assert await stack.finish_all() == ["backing off"]


async def test_a_task_that_backs_off_gets_its_place_in_the_lane_back(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("first", lane="x"))
    await stack.queue.put("t", NewTask("second", lane="x"))
    (claimed,) = await stack.take()
    due = int((stack.now() + HOUR).timestamp() * 1000)
    await stack.queue.settle(claimed, result=SettleResult.RETRY, due=due)
    await stack.redis.hdel(at("head", "t"), "x")
    await repaired(stack)
    assert await stack.take() == [], "it is still the turn of the first"
    stack.advance_clock(HOUR)
    assert await stack.finish_all() == ["first", "second"]
