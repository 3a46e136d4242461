"""Ends of attempts: many in one step, with another payload, with what the next holder needs."""

from datetime import timedelta

import pytest

from core.queue.queue import NewTask, Settlement
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack

pytestmark = on_both_servers


@pytest.mark.row("K-37")
@pytest.mark.parametrize("result", ["ready", "waiting"])
async def test_the_payload_changes_in_the_same_step_as_the_retry(stack: Stack, result: str) -> None:
    await stack.queue.put("t", "old")
    (task,) = await stack.take()
    due = int((stack.now() + HOUR).timestamp() * 1000) if result == "waiting" else 0
    assert await stack.queue.settle(task, result="retry", due=due, body="new") == result
    stack.passes(2 * HOUR)
    assert await stack.finish_all() == ["new"]


@pytest.mark.row("K-37")
async def test_the_payload_changes_when_a_task_is_given_back(stack: Stack) -> None:
    await stack.queue.put("t", "old")
    (task,) = await stack.take()
    await stack.queue.release(task, body="new")
    assert await stack.finish_all() == ["new"]


@pytest.mark.row("K-37", "K-30")
async def test_an_old_token_changes_no_payload(stack: Stack) -> None:
    await stack.queue.put("t", "right")
    (old,) = await stack.take()
    stack.passes(HOUR)
    (task,) = await stack.take()
    assert await stack.queue.settle(old, result="retry", body="wrong") == "stale"
    assert await stack.queue.release(old, body="wrong") == "stale"
    await stack.queue.release(task)
    assert await stack.finish_all() == ["right"]


@pytest.mark.row("K-33")
async def test_a_checkpoint_outlives_the_holder_and_a_retry(stack: Stack) -> None:
    await stack.queue.put("t", "long")
    (task,) = await stack.take()
    await stack.queue.extend(task, HOUR, checkpoint="half")
    await stack.queue.settle(task, result="retry")
    (task,) = await stack.take()
    assert task.checkpoint == "half"
    stack.passes(HOUR)
    (task,) = await stack.take()
    assert task.checkpoint == "half"


@pytest.mark.row("K-15", "K-17")
async def test_many_ends_are_told_in_one_step_each_by_itself(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask(str(n), lane=f"l{n}", attempts=9) for n in range(250)])
    await stack.queue.put_many("t", [NewTask("behind", lane=f"l{n}") for n in range(250)])
    tasks = [task for _ in range(3) for task in await stack.take(limit=100)]
    results = ["done", "failed", "bury", "retry"]
    expected = ["done", "failed", "buried", "ready"]
    stale = tasks[4]
    assert await stack.queue.settle(stale) == "done"
    answers = await stack.queue.settle_many([(task, Settlement(results[n % 4])) for n, task in enumerate(tasks)])
    assert answers == ["stale" if task is stale else expected[n % 4] for n, task in enumerate(tasks)]
    await stack.audit()
    assert len(await stack.finish_all()) == 250 + 62


@pytest.mark.row("K-15")
async def test_what_its_worker_buries_frees_its_lane(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("a", lane="lane"), NewTask("b", lane="lane")])
    (task,) = await stack.take()
    assert await stack.queue.settle(task, result="bury") == "buried"
    assert await stack.finish_all() == ["b"]


@pytest.mark.row("K-35")
async def test_counts_by_state_follow_every_step(stack: Stack) -> None:
    later = stack.now() + timedelta(minutes=5)
    ids = await stack.queue.put_many("t", [NewTask("", lane="l")] * 4 + [NewTask("")] * 2 + [NewTask("", due=later)])
    (task, *_) = await stack.take(limit=2)
    await stack.queue.bury(ids[3])
    told = (await stack.queue.stats())["tubes"]["t"]
    assert told["states"] == {"waiting": 1, "ready": 1, "locked": 2, "taken": 2, "buried": 1}
    await stack.queue.settle(task)
    stack.passes(timedelta(minutes=5, seconds=1))
    await stack.tick(times=1)
    told = (await stack.queue.stats())["tubes"]["t"]
    assert told["promoted"] == 1
    assert 900 <= told["lag_ms"] <= 1900
    assert told["put"] == 7
    assert told["live"] == sum(told["states"].values()) == 6


@pytest.mark.row("K-35")
async def test_the_oldest_is_found_behind_more_urgent_ones_and_in_lanes(stack: Stack) -> None:
    await stack.queue.put("t", "old", priority=9, lane="l")
    stack.passes(timedelta(minutes=3))
    stack.queue.ids._last += 180 * 10**9
    await stack.queue.put_many("t", [NewTask("", priority=n) for n in range(5)])
    assert 180_000 <= (await stack.queue.stats())["tubes"]["t"]["oldest_ms"] < 190_000


@pytest.mark.row("K-35")
async def test_it_tells_for_how_long_nobody_looked(stack: Stack) -> None:
    await stack.queue.put("t", "", due=stack.now() + timedelta(minutes=1))
    assert (await stack.queue.stats())["overdue_ms"] == 0
    stack.passes(timedelta(minutes=2))
    assert 59_000 <= (await stack.queue.stats())["overdue_ms"] <= 62_000
