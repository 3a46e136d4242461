"""Ends of attempts: many in one step, with another payload, with what the next holder needs."""

from datetime import timedelta

import pytest

from core.queue import Draft, Settlement
from tests.core.house import HOUR, House
from tests.servers import on_both_servers

pytestmark = on_both_servers


@pytest.mark.row("K-37")
@pytest.mark.parametrize("result", ["ready", "waiting"])
async def test_the_payload_changes_in_the_same_step_as_the_retry(house: House, result: str) -> None:
    await house.queue.put("t", "old")
    (task,) = await house.take()
    due = int((house.now() + HOUR).timestamp() * 1000) if result == "waiting" else 0
    assert await house.queue.settle(task, result="retry", due=due, body="new") == result
    house.passes(2 * HOUR)
    assert await house.finish_all() == ["new"]


@pytest.mark.row("K-37")
async def test_the_payload_changes_when_a_task_is_given_back(house: House) -> None:
    await house.queue.put("t", "old")
    (task,) = await house.take()
    await house.queue.release(task, body="new")
    assert await house.finish_all() == ["new"]


@pytest.mark.row("K-37", "K-30")
async def test_an_old_token_changes_no_payload(house: House) -> None:
    await house.queue.put("t", "right")
    (old,) = await house.take()
    house.passes(HOUR)
    (task,) = await house.take()
    assert await house.queue.settle(old, result="retry", body="wrong") == "stale"
    assert await house.queue.release(old, body="wrong") == "stale"
    await house.queue.release(task)
    assert await house.finish_all() == ["right"]


@pytest.mark.row("K-33")
async def test_a_checkpoint_outlives_the_holder_and_a_retry(house: House) -> None:
    await house.queue.put("t", "long")
    (task,) = await house.take()
    await house.queue.extend(task, HOUR, checkpoint="half")
    await house.queue.settle(task, result="retry")
    (task,) = await house.take()
    assert task.checkpoint == "half"
    house.passes(HOUR)
    (task,) = await house.take()
    assert task.checkpoint == "half"


@pytest.mark.row("K-15", "K-17")
async def test_many_ends_are_told_in_one_step_each_by_itself(house: House) -> None:
    await house.queue.put_many("t", [Draft(str(n), lane=f"l{n}", attempts=9) for n in range(250)])
    await house.queue.put_many("t", [Draft("behind", lane=f"l{n}") for n in range(250)])
    tasks = [task for _ in range(3) for task in await house.take(limit=100)]
    results = ["done", "failed", "bury", "retry"]
    expected = ["done", "failed", "buried", "ready"]
    stale = tasks[4]
    assert await house.queue.settle(stale) == "done"
    answers = await house.queue.settle_many([(task, Settlement(results[n % 4])) for n, task in enumerate(tasks)])
    assert answers == ["stale" if task is stale else expected[n % 4] for n, task in enumerate(tasks)]
    await house.audit()
    assert len(await house.finish_all()) == 250 + 62


@pytest.mark.row("K-15")
async def test_what_its_worker_buries_frees_its_lane(house: House) -> None:
    await house.queue.put_many("t", [Draft("a", lane="lane"), Draft("b", lane="lane")])
    (task,) = await house.take()
    assert await house.queue.settle(task, result="bury") == "buried"
    assert await house.finish_all() == ["b"]


@pytest.mark.row("K-35")
async def test_counts_by_state_follow_every_step(house: House) -> None:
    later = house.now() + timedelta(minutes=5)
    ids = await house.queue.put_many("t", [Draft("", lane="l")] * 4 + [Draft("")] * 2 + [Draft("", due=later)])
    (task, *_) = await house.take(limit=2)
    await house.queue.bury(ids[3])
    told = (await house.queue.stats())["tubes"]["t"]
    assert told["states"] == {"waiting": 1, "ready": 1, "locked": 2, "taken": 2, "buried": 1}
    await house.queue.settle(task)
    house.passes(timedelta(minutes=5, seconds=1))
    await house.tick(times=1)
    told = (await house.queue.stats())["tubes"]["t"]
    assert told["promoted"] == 1
    assert 900 <= told["lag_ms"] <= 1900
    assert told["put"] == 7
    assert told["live"] == sum(told["states"].values()) == 6


@pytest.mark.row("K-35")
async def test_the_oldest_is_found_behind_more_urgent_ones_and_in_lanes(house: House) -> None:
    await house.queue.put("t", "old", priority=9, lane="l")
    house.passes(timedelta(minutes=3))
    house.queue.ids._last += 180 * 10**9
    await house.queue.put_many("t", [Draft("", priority=n) for n in range(5)])
    assert 180_000 <= (await house.queue.stats())["tubes"]["t"]["oldest_ms"] < 190_000


@pytest.mark.row("K-35")
async def test_it_tells_for_how_long_nobody_looked(house: House) -> None:
    await house.queue.put("t", "", due=house.now() + timedelta(minutes=1))
    assert (await house.queue.stats())["overdue_ms"] == 0
    house.passes(timedelta(minutes=2))
    assert 59_000 <= (await house.queue.stats())["overdue_ms"] <= 62_000
