"""settle: many attempts in one step, new bodies, checkpoints for the next attempt, and the statistics."""

from datetime import timedelta

import pytest

from core.queue import NewTask, Settlement, SettleResult, StateCounts
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack

pytestmark = on_both_servers


@pytest.mark.parametrize("state", ["ready", "waiting"])
async def test_a_retry_replaces_the_body_in_the_same_step(stack: Stack, state: str) -> None:
    await stack.queue.put("t", NewTask("old"))
    (task,) = await stack.take()
    due = int((stack.now() + HOUR).timestamp() * 1000) if state == "waiting" else 0
    assert await stack.queue.settle(task, result=SettleResult.RETRY, due=due, body="new") == state
    stack.advance_clock(2 * HOUR)
    assert await stack.finish_all() == ["new"]


async def test_a_release_replaces_the_body(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("old"))
    (task,) = await stack.take()
    await stack.queue.release(task, body="new")
    assert await stack.finish_all() == ["new"]


async def test_a_stale_token_does_not_replace_the_body(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("right"))
    (old,) = await stack.take()
    stack.advance_clock(HOUR)
    (task,) = await stack.take()
    assert await stack.queue.settle(old, result=SettleResult.RETRY, body="wrong") == "stale"
    assert await stack.queue.release(old, body="wrong") == "stale"
    await stack.queue.release(task)
    assert await stack.finish_all() == ["right"]


async def test_a_checkpoint_survives_a_retry_and_a_lost_lease(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("long"))
    (task,) = await stack.take()
    await stack.queue.extend(task, HOUR, checkpoint="half")
    await stack.queue.settle(task, result=SettleResult.RETRY)
    (task,) = await stack.take()
    assert task.checkpoint == "half"
    stack.advance_clock(HOUR)
    (task,) = await stack.take()
    assert task.checkpoint == "half"


async def test_settling_many_settles_each_attempt_by_itself(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask(str(n), lane=f"l{n}", attempts=9) for n in range(250)])
    await stack.queue.put_many("t", [NewTask("behind", lane=f"l{n}") for n in range(250)])
    tasks = [task for _ in range(3) for task in await stack.take(limit=100)]
    results = list(SettleResult)
    expected = ["done", "failed", "ready", "buried"]
    stale = tasks[4]
    assert await stack.queue.settle(stale) == "done"
    states = await stack.settle_all([(task, Settlement(results[n % 4])) for n, task in enumerate(tasks)])
    assert states == ["stale" if task is stale else expected[n % 4] for n, task in enumerate(tasks)]
    await stack.audit()
    assert len(await stack.finish_all()) == 250 + 62


async def test_a_task_buried_by_its_worker_frees_its_lane(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("a", lane="lane"), NewTask("b", lane="lane")])
    (task,) = await stack.take()
    assert await stack.queue.settle(task, result=SettleResult.BURY) == "buried"
    assert await stack.finish_all() == ["b"]


async def test_stats_count_tasks_by_state_after_every_step(stack: Stack) -> None:
    later = stack.now() + timedelta(minutes=5)
    ids = await stack.queue.put_many("t", [NewTask("", lane="l")] * 4 + [NewTask("")] * 2 + [NewTask("", due=later)])
    (task, *_) = await stack.take(limit=2)
    await stack.queue.bury(ids[3])
    stats = (await stack.queue.inspector.stats()).tubes["t"]
    assert stats.states == StateCounts(waiting=1, ready=1, locked=2, taken=2, buried=1)
    await stack.queue.settle(task)
    stack.advance_clock(timedelta(minutes=5, seconds=1))
    await stack.tick(times=1)
    stats = (await stack.queue.inspector.stats()).tubes["t"]
    assert (stats.put, stats.promoted, stats.live) == (7, 1, 6)
    assert 900 <= stats.lag_ms <= 1900
    assert sum(getattr(stats.states, state) for state in stats.states.__struct_fields__) == stats.live


async def test_stats_find_the_oldest_task_behind_more_urgent_ones_and_in_lanes(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("old", priority=9, lane="l"))
    stack.advance_clock(timedelta(minutes=3))
    stack.queue.ids.last_ns += 180 * 10**9
    await stack.queue.put_many("t", [NewTask("", priority=n) for n in range(5)])
    assert 180_000 <= (await stack.queue.inspector.stats()).tubes["t"].oldest_ms < 190_000


async def test_the_age_of_a_ready_task_that_was_deferred_counts_from_when_it_was_due(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("", due=stack.now() + timedelta(hours=1)))
    stack.advance_clock(timedelta(hours=1, minutes=3))
    await stack.tick()
    assert 180_000 <= (await stack.queue.inspector.stats()).tubes["t"].oldest_ms < 190_000


async def test_stats_show_how_long_due_tasks_have_waited_without_any_worker(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("", due=stack.now() + timedelta(minutes=1)))
    assert (await stack.queue.inspector.stats()).overdue_ms == 0
    stack.advance_clock(timedelta(minutes=2))
    assert 59_000 <= (await stack.queue.inspector.stats()).overdue_ms <= 62_000
