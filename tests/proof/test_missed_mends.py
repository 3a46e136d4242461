"""Of the repair, what no other test noticed when it was left out of a script: each found by tests/proof/mutate.py.

That the audit is clean afterwards is not enough: it also is when the repair throws away what it should have kept.
"""

from datetime import timedelta

import pytest

from core.audit import Audit
from core.keys import KEYS
from core.orders import HistoryKey
from core.queue import Draft
from core.words import DeliveryState, Status
from tests.core.house import HOUR, TENANT, House, people
from tests.proof.busy import items

pytestmark = pytest.mark.row("K-44")
DAY_MS = 24 * 3_600_000


def at(name: str, *parts: str) -> str:
    return KEYS[name].at(0, *parts)


async def mended(house: House) -> list[str]:
    """What repairs of everything say that they did; afterwards all is in order."""
    told: list[str] = []
    for _ in range(3):
        audit = Audit(house.store)
        told += [what async for violation in audit.find() for what in await audit.mend(violation)]
    await house.audit()
    return told


async def finished(house: House) -> HistoryKey:
    key = (await house.deliver(*people(2))).key
    for task in await house.take("echo"):
        await house.queue.settle(task, outcomes=items(task, Status.SENT))
    return key


async def test_what_is_in_order_is_left_as_it_is(house: House) -> None:
    """Every script of the repair, on every state: nothing is done."""
    queue, run = house.queue, house.store.run
    await house.redis.hset(at("options"), "kept:keep_ms", 3_600_000)
    kept = await queue.put("kept", "", kind="k")
    for task in await house.take("kept"):
        await queue.settle(task)
    names = {
        "taken": await queue.put("t", "", lane="x", kind="k"),
        "locked": await queue.put("t", "", lane="x"),
        "ready": await queue.put("t", "", priority=9, expires=house.now() + HOUR),
        "buried": await queue.put("t", "", lane="y"),
        "waiting": await queue.put("t", "", lane="z", due=house.now() + HOUR),
        "offered": await queue.put("t", "", lane="o", priority=9),
        "kept": kept,
    }
    (held,) = await house.take()
    assert held.name == names["taken"]
    await queue.bury(names["buried"])
    house.passes(timedelta(minutes=1))
    for name in names.values():
        assert await run("mend_task", 0, name.partition(".")[2]) == []
    for lane in "xyzo":
        assert await run("mend_lane", 0, "t", lane, "") == []
    for member in ("@o", names["ready"].partition(".")[2]):
        assert await run("mend_offer", 0, "t", "default", member) == []
    assert await run("mend_tenant", 0, "t", "default") == []
    assert await run("mend_tenant", 0, "t", "nobody") == []
    assert await run("mend_kind", 0, "k") == []
    assert await run("mend_index", 0, at("finished"), 1, kept.partition(".")[2]) == []
    assert await run("mend_index", 0, at("lease"), 0, held.id) == []
    keys = [await finished(house), (await house.deliver(*people(1), deliver_at=house.now() + HOUR)).key]
    keys.append((await house.deliver(*people(1))).key)
    for key in keys:
        assert await run("mend_history", 0, TENANT, key.suffix) == []


async def test_a_delivery_that_left_the_list_is_listed_again_and_not_forgotten(house: House) -> None:
    key = await finished(house)
    await house.redis.zrem(at("listed", TENANT), key.suffix)
    assert await mended(house) == ["put into the list"]
    assert (await house.history(key)).state is DeliveryState.FINISHED


async def test_what_lost_its_end_gets_that_of_its_delivery(house: House) -> None:
    key = await finished(house)
    member = f"{TENANT}|{key.suffix}"
    drop_at = (await house.redis.zscore(at("retained"), member)) or 0
    await house.redis.persist(at("outcomes", key.suffix))
    house.passes(HOUR)
    assert await mended(house) == ["given an end"]
    assert await house.redis.zscore(at("retained"), member) == drop_at, "its retention runs on"
    assert await house.redis.pexpiretime(at("outcomes", key.suffix)) == drop_at + DAY_MS


async def test_a_delivery_that_left_the_retained_is_kept_as_long_as_the_installation_says(house: House) -> None:
    await house.redis.hset(at("settings"), "retention_ms", 2 * DAY_MS)
    now = (await house.claim(limit=0)).now
    key = await finished(house)
    member = f"{TENANT}|{key.suffix}"
    for _ in range(2):
        kept = ((await house.redis.zscore(at("retained"), member)) or 0) - now
        assert 2 * DAY_MS <= kept < 2 * DAY_MS + 60_000
        await house.redis.zrem(at("retained"), member)
        assert await mended(house) == ["put into the retained"]


@pytest.mark.parametrize("damage", ["wrong", "gone"])
async def test_the_marks_of_a_finished_delivery_are_counted_anew_and_still_have_its_end(
    house: House, damage: str
) -> None:
    key = await finished(house)
    reached = at("reached", key.suffix)
    ends = await house.redis.pexpiretime(reached)
    if damage == "wrong":
        await house.redis.setbit(reached, 1, 0)
    else:
        await house.redis.delete(reached)
    assert await mended(house) == ["counted anew"]
    assert abs(await house.redis.pexpiretime(reached) - ends) < 1000


async def test_a_deferred_task_that_stands_in_a_lane_leaves_it_to_who_is_at_work(house: House) -> None:
    deferred = (await house.queue.put("t", "later", lane="x", due=house.now() + HOUR)).partition(".")[2]
    await house.queue.put("t", "now", lane="x")
    (held,) = await house.take()
    await house.redis.zadd(at("lane", "t", "x"), {deferred: 1})
    await mended(house)
    assert await house.redis.hget(at("front", "t"), "x") == held.id
    assert await house.redis.zrange(at("lane", "t", "x"), 0, -1) == []


async def test_who_is_at_work_is_put_first_again_and_who_stood_there_behind_him(house: House) -> None:
    first = (await house.queue.put("t", "first", lane="x")).partition(".")[2]
    second = (await house.queue.put("t", "second", lane="x")).partition(".")[2]
    third = (await house.queue.put("t", "third", lane="x")).partition(".")[2]
    (held,) = await house.take()
    assert held.id == first
    await house.redis.hset(at("front", "t"), "x", second)
    await house.redis.zrem(at("lane", "t", "x"), second)
    await house.store.run("mend_task", 0, first)
    assert await house.redis.zrange(at("lane", "t", "x"), 0, -1) == [second, third]
    await mended(house)
    assert await house.redis.hget(at("front", "t"), "x") == first
    assert await house.queue.settle(held) == "done"
    assert await house.finish_all() == ["second", "third"]


@pytest.mark.parametrize("lane_first", [False, True])
async def test_who_stood_first_and_was_lost_is_before_the_others_again(house: House, lane_first: bool) -> None:
    """Whether the repair comes to the task or to the lane first, where the next one was let up meanwhile."""
    lost = (await house.queue.put("t", "first", lane="x")).partition(".")[2]
    await house.queue.put_many("t", [Draft("second", lane="x"), Draft("third", lane="x")])
    await house.redis.hdel(at("front", "t"), "x")
    if lane_first:
        await house.store.run("mend_lane", 0, "t", "x", "")
    else:
        await house.store.run("mend_task", 0, lost)
    await mended(house)
    assert await house.finish_all() == ["first", "second", "third"]


async def test_of_two_who_lost_their_place_the_one_at_work_has_it(house: House) -> None:
    """Who backed off can wait as one who was put off; nothing is begun beside who is taken."""
    backing = await house.queue.put("t", "backing off", lane="x")
    (held,) = await house.take()
    await house.queue.settle(held, result="retry", due=int((house.now() + HOUR).timestamp() * 1000))
    await house.redis.hdel(at("front", "t"), "x")
    await house.queue.put("t", "taken", lane="x")
    (taken,) = await house.take()
    await mended(house)
    assert await house.redis.hget(at("front", "t"), "x") == taken.id
    assert (await house.queue.peek(backing))["state"] == "waiting"
    assert await house.queue.settle(taken) == "done"
    house.passes(HOUR)
    assert await house.finish_all() == ["backing off"]


async def test_who_backs_off_and_lost_his_lane_gets_it_back_at_his_place(house: House) -> None:
    await house.queue.put("t", "first", lane="x")
    await house.queue.put("t", "second", lane="x")
    (held,) = await house.take()
    due = int((house.now() + HOUR).timestamp() * 1000)
    await house.queue.settle(held, result="retry", due=due)
    await house.redis.hdel(at("front", "t"), "x")
    await mended(house)
    assert await house.take() == [], "it is still his turn"
    house.passes(HOUR)
    assert await house.finish_all() == ["first", "second"]
