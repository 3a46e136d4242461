"""Settling and claiming in one step, as a worker without room does."""

import asyncio
from datetime import timedelta

from core.queue import NewTask
from core.queue.task import Claim, ClaimRequest, Settled, Settlement, SettleResult, Task
from core.queue.workers.worker import Worker, WorkerOptions
from tests.support.servers import on_both_servers
from tests.support.stack import FLOOR, LEASE, Stack


def request(limit: int, tube: str = "t") -> ClaimRequest:
    return ClaimRequest(tube, "worker", limit, LEASE, FLOOR)


@on_both_servers
async def test_a_turn_claims_the_next_task_of_the_lane_that_it_frees(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask(str(n), lane="l") for n in range(3)])
    (first,) = await stack.take(limit=3)
    states, claim = await stack.queue.turn(0, [Settlement().row(first)], request(3))
    assert states == [Settled.DONE]
    assert [task.body for task in claim.tasks] == ["1"]


async def test_a_turn_claims_no_more_than_its_limit(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask(str(n)) for n in range(5)])
    tasks = await stack.take(limit=2)
    _, claim = await stack.queue.turn(0, [Settlement().row(task) for task in tasks], request(2))
    assert [task.body for task in claim.tasks] == ["2", "3"]


async def test_a_turn_with_an_old_token_settles_nothing_and_claims(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("a"), NewTask("b")])
    (frozen,) = await stack.take(limit=1)
    stack.advance_clock(LEASE * 2)
    (again,) = await stack.take(limit=1)
    states, claim = await stack.queue.turn(0, [Settlement().row(frozen)], request(2))
    assert states == [Settled.STALE]
    assert [one.body for one in claim.tasks] == ["b"]
    assert await stack.queue.settle(again) == Settled.DONE


async def test_a_task_that_is_settled_twice_in_one_turn_ends_once(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    (task,) = await stack.take()
    retry, done = Settlement(SettleResult.RETRY).row(task), Settlement().row(task)
    states, claim = await stack.queue.turn(0, [retry, done], request(1))
    assert states == [Settled.READY, Settled.STALE]
    assert [one.attempts for one in claim.tasks] == [2]


@on_both_servers
async def test_a_busy_worker_needs_one_call_for_a_page(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask(str(n), lane=f"l{n // 10}") for n in range(200)])
    handled: list[str] = []
    ended = asyncio.Event()

    async def handle(task: Task, claim: Claim) -> Settlement:
        handled.append(task.body)
        if len(handled) == 200:
            ended.set()
        return Settlement()

    worker = Worker(stack.store, "t", handle, options=WorkerOptions(max_tasks=20, max_entries=20))
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(ended.wait(), 60)
    worker.stop(timedelta(seconds=10))
    await running
    assert sorted(map(int, handled)) == list(range(200))
    assert worker.claims < 60, "a claim for each page of ten, and a few when work ends"
    for lane in range(20):
        of_lane = [int(body) for body in handled if int(body) // 10 == lane]
        assert of_lane == sorted(of_lane)


async def test_a_claim_goes_on_behind_a_task_that_expired_after_its_worker_was_lost(stack: Stack) -> None:
    """Regression: the claim ended at the expired task, and the worker slept for up to half a second."""
    await stack.queue.put("t", NewTask("lost", lane="x", expires=stack.now() + LEASE * 3))
    await stack.take(limit=1)
    await stack.queue.put("t", NewTask("next", lane="x"))
    stack.advance_clock(LEASE * 4)
    claim = await stack.queue.claim(0, request(1))
    assert [task.body for task in claim.tasks] == ["next"]
