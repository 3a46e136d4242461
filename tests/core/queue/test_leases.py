"""Only the token of the last claim changes a task; a lease that is not extended ends."""

import asyncio
import time
from datetime import timedelta

import pytest
from msgspec.structs import replace

from core.errors import Conflict, NotFound
from core.queue import Claim, NewTask, Settlement, SettleResult, Task, TaskFilter, Worker, WorkerOptions
from core.queue.workers.heartbeat import Heartbeat
from core.redis.keys import KEYS
from tests.support.audited import dump
from tests.support.servers import on_both_servers
from tests.support.stack import FLOOR, HOUR, LEASE, Stack
from tests.support.waiting import until

pytestmark = on_both_servers
MINUTE = timedelta(minutes=1)


async def permanent_keys(stack: Stack) -> dict[str, object]:
    """Return everything on the server except keys with a time to live."""
    return {key: dumped.value for key, dumped in (await dump(stack.server.url)).items() if dumped.pttl < 0}


async def lost_and_claimed_again(stack: Stack, lane: str = "") -> tuple[Task, Task]:
    """Return a task as its first worker got it, which froze, and as its second worker got it."""
    await stack.queue.put("t", NewTask("a", lane=lane))
    (first,) = await stack.take(owner="frozen")
    stack.advance_clock(LEASE + MINUTE)
    (second,) = await stack.take(owner="next")
    assert (first.id, second.body) == (second.id, "a")
    return first, second


@pytest.mark.parametrize("lane", ["", "lane"])
async def test_a_stale_token_changes_nothing(stack: Stack, lane: str) -> None:
    first, second = await lost_and_claimed_again(stack, lane)
    before = await permanent_keys(stack)
    assert await stack.queue.settle(first) == "stale"
    assert await stack.queue.settle(first, result=SettleResult.RETRY, due=1) == "stale"
    assert await stack.queue.release(first) == "stale"
    assert not (await stack.queue.extend(first, HOUR, checkpoint="mine")).lease_valid
    assert await permanent_keys(stack) == before
    assert await stack.queue.settle(second) == "done"


async def test_the_token_of_a_settled_task_is_stale(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    (task,) = await stack.take()
    await stack.queue.settle(task)
    before = await permanent_keys(stack)
    assert await stack.queue.settle(task) == "stale"
    assert await stack.queue.release(task) == "stale"
    assert not (await stack.queue.extend(task, HOUR)).lease_valid
    assert await permanent_keys(stack) == before


async def test_the_token_of_a_released_task_is_stale(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    (first,) = await stack.take()
    await stack.queue.release(first)
    assert await stack.queue.settle(first) == "stale"
    (second,) = await stack.take()
    assert await stack.queue.settle(first) == "stale"
    assert await stack.queue.settle(second) == "done"


async def test_every_claim_gets_a_greater_token_than_those_before(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    tokens = []
    for _ in range(4):
        (task,) = await stack.take()
        tokens.append(int(task.token.partition(" ")[0]))
        await stack.queue.release(task)
    assert tokens == sorted(set(tokens))


async def test_an_extended_lease_stays_valid_and_its_checkpoint_reaches_the_next_attempt(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    (task,) = await stack.take()
    assert (await stack.queue.extend(task, 2 * HOUR, checkpoint="page 7")).lease_valid
    stack.advance_clock(HOUR)
    assert await stack.take() == []
    stack.advance_clock(2 * HOUR)
    (again,) = await stack.take()
    assert (again.checkpoint, again.crashed) == ("page 7", True)


async def test_attempts_are_counted_at_the_claim_and_not_for_released_tasks(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    (task,) = await stack.take()
    assert task.attempts == 1
    await stack.queue.release(task)
    (task,) = await stack.take()
    assert task.attempts == 1
    stack.advance_clock(HOUR)
    (task,) = await stack.take()
    assert task.attempts == 2


@pytest.mark.parametrize("lane", ["", "lane"])
async def test_a_task_that_crashes_its_workers_is_buried_after_its_last_attempt(stack: Stack, lane: str) -> None:
    task_id = await stack.queue.put("t", NewTask("poison", lane=lane, attempts=3))
    await stack.queue.put("t", NewTask("harmless", lane=lane))
    for attempt in (1, 2, 3):
        (poison,) = await stack.take(lease=MINUTE)
        assert (poison.body, poison.attempts) == ("poison", attempt)
        stack.advance_clock(2 * MINUTE)
    assert await stack.finish_all() == ["harmless"]
    assert await stack.state(task_id) == "buried"
    await stack.queue.kick(task_id)
    (kicked,) = await stack.take(limit=10)
    assert (kicked.body, kicked.attempts) == ("poison", 1)


async def test_the_number_of_attempts_is_a_setting_of_the_installation(stack: Stack) -> None:
    await stack.redis.hset("settings:{0}", "max_attempts", "2")
    task_id = await stack.queue.put("t", NewTask("poison"))
    for _ in range(2):
        await stack.take(lease=MINUTE)
        stack.advance_clock(2 * MINUTE)
    await stack.tick()
    assert await stack.state(task_id) == "buried"


async def test_a_taken_task_cannot_be_buried_and_a_ready_one_cannot_be_kicked(stack: Stack) -> None:
    task_id = await stack.queue.put("t", NewTask("a"))
    with pytest.raises(Conflict) as refused:
        await stack.queue.kick(task_id)
    assert refused.value.code == "TASK_NOT_BURIED"
    await stack.take()
    with pytest.raises(Conflict) as refused:
        await stack.queue.bury(task_id)
    assert refused.value.code == "TASK_TAKEN"


async def test_an_ended_or_unknown_task_is_not_found(stack: Stack) -> None:
    task_id = await stack.queue.put("t", NewTask("a"))
    await stack.queue.cancel(task_id)
    for name in (task_id, "0.nothing", "nonsense", "9.1.x"):
        for method in (stack.queue.inspector.peek, stack.queue.cancel, stack.queue.bury, stack.queue.kick):
            with pytest.raises(NotFound):
                await method(name)


async def test_a_task_that_is_not_taken_in_time_expires_and_is_counted(stack: Stack) -> None:
    for number in range(5):
        await stack.queue.put("t", NewTask(str(number), expires=stack.now() + number * MINUTE + MINUTE / 2))
    stack.advance_clock(2 * MINUTE)
    assert await stack.finish_all() == ["2", "3", "4"]
    assert (await stack.queue.inspector.stats()).tubes["t"].expired == 2


async def test_no_task_is_claimed_after_its_expiry_however_many_have_expired(stack: Stack) -> None:
    """I10. A claim expires a page of a hundred tasks; the expired tasks beyond it were claimed."""
    end = stack.now() + MINUTE
    await asyncio.gather(*(stack.queue.put("t", NewTask(str(number), expires=end)) for number in range(250)))
    await asyncio.gather(
        *(stack.queue.put("t", NewTask("laned", lane=f"{number}", expires=end)) for number in range(100))
    )
    await stack.queue.put("t", NewTask("last"))
    stack.advance_clock(HOUR)
    assert await stack.finish_all() == ["last"]
    assert (await stack.queue.inspector.stats()).tubes["t"].expired == 350


async def test_a_taken_task_does_not_expire_before_its_lease_is_lost(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a", expires=stack.now() + MINUTE))
    (task,) = await stack.take(lease=HOUR)
    stack.advance_clock(2 * MINUTE)
    await stack.tick()
    assert (await stack.queue.extend(task, HOUR)).lease_valid
    stack.advance_clock(2 * HOUR)
    assert await stack.take() == []


async def test_deferred_tasks_cannot_be_claimed_before_they_are_due_and_all_can_then(stack: Stack) -> None:
    at = stack.now() + HOUR
    await asyncio.gather(*(stack.queue.put("t", NewTask(str(number), due=at)) for number in range(250)))
    assert await stack.take(limit=300) == []
    stack.advance_clock(HOUR)
    assert sorted(await stack.finish_all()) == sorted(map(str, range(250)))


async def test_a_claim_promotes_a_bounded_number_of_due_tasks_and_reports_that_there_are_more(stack: Stack) -> None:
    at = stack.now() + HOUR
    await asyncio.gather(*(stack.queue.put("t", NewTask(str(number), due=at)) for number in range(250)))
    stack.advance_clock(HOUR)
    takeable = []
    for _ in range(3):
        claim = await stack.claim("nobody's", 0)
        takeable.append(await stack.redis.zcard("queue:{0}:ready:t:default"))
        assert claim.next_at <= claim.now or takeable[-1] == 250
    assert takeable == [100, 200, 250]


async def test_ids_sort_by_time_and_do_not_collide(stack: Stack) -> None:
    ids = [await stack.queue.put("t", NewTask("a")) for _ in range(50)]
    ids += await asyncio.gather(*(stack.queue.put("t", NewTask("a")) for _ in range(200)))
    assert len(set(ids)) == 250
    assert ids[:50] == sorted(ids[:50])


async def test_reading_the_queue_changes_nothing(stack: Stack) -> None:
    task_id = await stack.queue.put("t", NewTask("a", lane="lane", expires=stack.now() + HOUR))
    await stack.queue.put("t", NewTask("b", lane="lane", due=stack.now() + HOUR))
    before = await permanent_keys(stack)
    await stack.queue.inspector.peek(task_id)
    await stack.queue.inspector.list(TaskFilter(tube="t"), None, 10)
    await stack.queue.inspector.stats()
    assert await permanent_keys(stack) == before


async def test_a_handler_that_raises_leaves_its_task_to_the_lease_and_the_worker_goes_on(
    stack: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    attempted: list[tuple[str, int]] = []

    async def handle(task: Task, claim: Claim) -> Settlement:
        attempted.append((task.body, task.attempts))
        if (task.body, task.attempts) == ("faulty", 1):
            raise ZeroDivisionError("of the handler")
        return Settlement()

    worker = Worker(stack.store, "t", handle, options=WorkerOptions(lease=timedelta(seconds=0.4), max_sleep=FLOOR))
    running = asyncio.create_task(worker.run())
    for body in ("faulty", "good"):
        await stack.queue.put("t", NewTask(body))
    await until(lambda: len(attempted) == 3)
    worker.stop()
    await running
    assert attempted == [("faulty", 1), ("good", 1), ("faulty", 2)]
    (logged,) = [record for record in caplog.records if record.exc_info]
    assert "left to its lease" in logged.message
    assert isinstance((logged.exc_info or [None, None])[1], ZeroDivisionError)


@pytest.mark.parametrize("extends_blocked", [True, False])
async def test_a_lease_is_extended_while_the_event_loop_is_blocked_only_if_the_worker_wants_it(
    stack: Stack, extends_blocked: bool
) -> None:
    """A lease that ended while the loop was blocked is not extended afterwards, even if no other worker came."""
    lost: list[str] = []
    lease = timedelta(seconds=1)
    heartbeat = Heartbeat(
        stack.store, lease, HOUR, lambda task, extension: lost.append(task.id), extends_blocked=extends_blocked
    )
    await stack.queue.put("t", NewTask("a"))
    (task,) = await stack.take(lease=lease)
    heartbeat.add(task, time.monotonic())
    heartbeat.start()
    try:
        await asyncio.to_thread(lambda: None)
        first = heartbeat.lease_end(task)
        time.sleep(3)  # noqa: ASYNC251 - the handler that blocks
        if extends_blocked:
            assert heartbeat.lease_end(task) > first + 1
            assert lost == []
        else:
            await until(lambda: lost == [task.id])
            assert heartbeat.lease_end(task) == 0
    finally:
        heartbeat.stop()


async def test_a_token_is_worth_nothing_without_its_owner(stack: Stack) -> None:
    """After a promotion without the last writes another worker may have a claim with the same number."""
    await stack.queue.put("t", NewTask(""))
    (task,) = await stack.take(owner="mine")
    stolen = replace(task, token=task.token.replace("mine", "yours"))
    assert await stack.queue.settle(stolen) == "stale"
    assert await stack.queue.release(stolen) == "stale"
    assert await stack.queue.suspend(stolen, 0) == "stale"
    assert not (await stack.queue.extend(stolen, LEASE)).lease_valid
    assert await stack.queue.settle(task) == "done"


async def test_no_lease_ends_at_once_after_a_promotion_however_many_there_are(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask(str(n)) for n in range(501)])
    taken = [task for _ in range(6) for task in await stack.take(limit=100)]
    await stack.store.command("HSET", KEYS["primary"].at(0), "id", "the primary before")
    assert await stack.store.run("note_primary", 0, 2 * LEASE // timedelta(milliseconds=1)) == 1
    leases = await stack.store.command("ZRANGE", KEYS["lease"].at(0), 0, -1, "WITHSCORES")
    assert len(leases) == len(taken) == 501
    assert min(end for _, end in leases) >= taken[-1].claimed + 2 * LEASE / timedelta(milliseconds=1)
    await stack.settle_all([(task, Settlement()) for task in taken])
