"""A claimed task is held by its token alone; time takes back what nobody speaks for."""

import asyncio
from datetime import timedelta

import pytest

from core.errors import Conflict, NotFound
from core.queue.queue import Claim, Settlement, Task
from core.queue.worker import Worker, WorkerOptions
from tests.support.audited import dump
from tests.support.servers import on_both_servers
from tests.support.stack import FLOOR, HOUR, LEASE, Stack
from tests.support.waiting import until

pytestmark = on_both_servers
MINUTE = timedelta(minutes=1)


async def kept(stack: Stack) -> dict[str, object]:
    """Everything on the server but for the keys that end by themselves within seconds."""
    return {key: kept.value for key, kept in (await dump(stack.server.url)).items() if kept.pttl < 0}


async def lost_and_taken_again(stack: Stack, lane: str = "") -> tuple[Task, Task]:
    """A task whose first holder froze, and the same task with its second holder."""
    await stack.queue.put("t", "a", lane=lane)
    (first,) = await stack.take(owner="frozen")
    stack.passes(LEASE + MINUTE)
    (second,) = await stack.take(owner="next")
    assert (first.id, second.body) == (second.id, "a")
    return first, second


@pytest.mark.row("K-30")
@pytest.mark.parametrize("lane", ["", "lane"])
async def test_an_old_token_changes_nothing(stack: Stack, lane: str) -> None:
    first, second = await lost_and_taken_again(stack, lane)
    before = await kept(stack)
    assert await stack.queue.settle(first) == "stale"
    assert await stack.queue.settle(first, result="retry", due=1) == "stale"
    assert await stack.queue.release(first) == "stale"
    assert not (await stack.queue.extend(first, HOUR, checkpoint="mine")).lease_valid
    assert await kept(stack) == before
    assert await stack.queue.settle(second) == "done"


@pytest.mark.row("K-30")
async def test_a_task_that_was_settled_knows_its_token_no_more(stack: Stack) -> None:
    await stack.queue.put("t", "a")
    (task,) = await stack.take()
    await stack.queue.settle(task)
    before = await kept(stack)
    assert await stack.queue.settle(task) == "stale"
    assert await stack.queue.release(task) == "stale"
    assert not (await stack.queue.extend(task, HOUR)).lease_valid
    assert await kept(stack) == before


async def test_the_token_of_one_who_gave_the_task_back_is_old(stack: Stack) -> None:
    await stack.queue.put("t", "a")
    (first,) = await stack.take()
    await stack.queue.release(first)
    assert await stack.queue.settle(first) == "stale"
    (second,) = await stack.take()
    assert await stack.queue.settle(first) == "stale"
    assert await stack.queue.settle(second) == "done"


async def test_every_claim_has_a_token_of_its_own_that_is_greater_than_those_before(stack: Stack) -> None:
    await stack.queue.put("t", "a")
    tokens = []
    for _ in range(4):
        (task,) = await stack.take()
        tokens.append(int(task.token))
        await stack.queue.release(task)
    assert tokens == sorted(set(tokens))


@pytest.mark.row("K-33")
async def test_an_extended_lease_holds_and_its_checkpoint_comes_to_the_next_holder(stack: Stack) -> None:
    await stack.queue.put("t", "a")
    (task,) = await stack.take()
    assert (await stack.queue.extend(task, 2 * HOUR, checkpoint="page 7")).lease_valid
    stack.passes(HOUR)
    assert await stack.take() == []
    stack.passes(2 * HOUR)
    (again,) = await stack.take()
    assert (again.checkpoint, again.crashed) == ("page 7", True)


@pytest.mark.row("K-30")
async def test_attempts_are_counted_at_the_claim_and_what_was_given_back_was_none(stack: Stack) -> None:
    await stack.queue.put("t", "a")
    (task,) = await stack.take()
    assert task.attempts == 1
    await stack.queue.release(task)
    (task,) = await stack.take()
    assert task.attempts == 1
    stack.passes(HOUR)
    (task,) = await stack.take()
    assert task.attempts == 2


@pytest.mark.row("K-43")
@pytest.mark.parametrize("lane", ["", "lane"])
async def test_a_task_that_kills_its_workers_is_buried_after_its_last_attempt(stack: Stack, lane: str) -> None:
    task_id = await stack.queue.put("t", "poison", lane=lane, attempts=3)
    await stack.queue.put("t", "harmless", lane=lane)
    for attempt in (1, 2, 3):
        (poison,) = await stack.take(lease=MINUTE)
        assert (poison.body, poison.attempts) == ("poison", attempt)
        stack.passes(2 * MINUTE)
    assert await stack.finish_all() == ["harmless"]
    assert await stack.state(task_id) == "buried"
    await stack.queue.kick(task_id)
    (kicked,) = await stack.take(limit=10)
    assert (kicked.body, kicked.attempts) == ("poison", 1)


@pytest.mark.row("K-43")
async def test_how_many_attempts_a_task_has_is_a_setting_of_the_installation(stack: Stack) -> None:
    await stack.redis.hset("settings:{0}", "max_attempts", "2")
    task_id = await stack.queue.put("t", "poison")
    for _ in range(2):
        await stack.take(lease=MINUTE)
        stack.passes(2 * MINUTE)
    await stack.tick()
    assert await stack.state(task_id) == "buried"


@pytest.mark.row("K-34")
async def test_what_is_under_way_cannot_be_buried_and_what_is_not_buried_not_kicked(stack: Stack) -> None:
    task_id = await stack.queue.put("t", "a")
    with pytest.raises(Conflict) as refused:
        await stack.queue.kick(task_id)
    assert refused.value.code == "TASK_NOT_BURIED"
    await stack.take()
    with pytest.raises(Conflict) as refused:
        await stack.queue.bury(task_id)
    assert refused.value.code == "TASK_TAKEN"


async def test_a_task_that_ended_or_never_was_is_not_found(stack: Stack) -> None:
    task_id = await stack.queue.put("t", "a")
    await stack.queue.cancel(task_id)
    for name in (task_id, "0.nothing", "nonsense", "9.1.x"):
        for ask in (stack.queue.peek, stack.queue.cancel, stack.queue.bury, stack.queue.kick):
            with pytest.raises(NotFound):
                await ask(name)


@pytest.mark.row("K-02", "K-03")
async def test_what_is_not_taken_in_time_is_expired_and_counted(stack: Stack) -> None:
    for number in range(5):
        await stack.queue.put("t", str(number), expires=stack.now() + number * MINUTE + MINUTE / 2)
    stack.passes(2 * MINUTE)
    assert await stack.finish_all() == ["2", "3", "4"]
    assert (await stack.queue.stats())["tubes"]["t"]["expired"] == 2


@pytest.mark.row("K-03")
async def test_nothing_is_handed_out_after_its_expiry_however_much_has_expired(stack: Stack) -> None:
    """I10. A tick expires a page of a hundred; what was beyond the page was claimed."""
    end = stack.now() + MINUTE
    await asyncio.gather(*(stack.queue.put("t", str(number), expires=end) for number in range(250)))
    await asyncio.gather(*(stack.queue.put("t", "laned", lane=f"{number}", expires=end) for number in range(100)))
    await stack.queue.put("t", "last")
    stack.passes(HOUR)
    assert await stack.finish_all() == ["last"]
    assert (await stack.queue.stats())["tubes"]["t"]["expired"] == 350


@pytest.mark.row("K-04")
async def test_a_taken_task_is_not_removed_by_expiry_but_when_its_lease_is_lost(stack: Stack) -> None:
    await stack.queue.put("t", "a", expires=stack.now() + MINUTE)
    (task,) = await stack.take(lease=HOUR)
    stack.passes(2 * MINUTE)
    await stack.tick()
    assert (await stack.queue.extend(task, HOUR)).lease_valid
    stack.passes(2 * HOUR)
    assert await stack.take() == []


@pytest.mark.row("K-06", "K-07")
async def test_deferred_tasks_are_invisible_until_due_and_all_takeable_then(stack: Stack) -> None:
    at = stack.now() + HOUR
    await asyncio.gather(*(stack.queue.put("t", str(number), due=at) for number in range(250)))
    assert await stack.take(limit=300) == []
    stack.passes(HOUR)
    assert sorted(await stack.finish_all()) == sorted(map(str, range(250)))


@pytest.mark.row("K-07")
async def test_a_tick_is_bounded_and_says_that_there_is_more(stack: Stack) -> None:
    at = stack.now() + HOUR
    await asyncio.gather(*(stack.queue.put("t", str(number), due=at) for number in range(250)))
    stack.passes(HOUR)
    takeable = []
    for _ in range(3):
        claim = await stack.claim("nobody's", 0)
        takeable.append(await stack.redis.zcard("queue:{0}:ready:t:default"))
        assert claim.next_at <= claim.now or takeable[-1] == 250
    assert takeable == [100, 200, 250]


@pytest.mark.row("K-23")
async def test_ids_sort_by_time_and_do_not_collide(stack: Stack) -> None:
    ids = [await stack.queue.put("t", "a") for _ in range(50)]
    ids += await asyncio.gather(*(stack.queue.put("t", "a") for _ in range(200)))
    assert len(set(ids)) == 250
    assert ids[:50] == sorted(ids[:50])


@pytest.mark.row("K-11")
async def test_looking_changes_nothing(stack: Stack) -> None:
    task_id = await stack.queue.put("t", "a", lane="lane", expires=stack.now() + HOUR)
    await stack.queue.put("t", "b", lane="lane", due=stack.now() + HOUR)
    before = await kept(stack)
    await stack.queue.peek(task_id)
    await stack.queue.list(tube="t", state=None, tenant=None, cursor=None, limit=10)
    await stack.queue.stats()
    assert await kept(stack) == before


@pytest.mark.row("K-30")
async def test_a_fault_of_a_handler_leaves_its_task_to_the_lease_and_stops_nobody_else(
    stack: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    attempted: list[tuple[str, int]] = []

    async def handle(task: Task, claim: Claim) -> Settlement:
        attempted.append((task.body, task.attempts))
        if (task.body, task.attempts) == ("faulty", 1):
            raise ZeroDivisionError("of the handler")
        return Settlement()

    worker = Worker(stack.store, "t", handle, pace=WorkerOptions(lease=timedelta(seconds=0.4), floor=FLOOR))
    running = asyncio.create_task(worker.run())
    for body in ("faulty", "good"):
        await stack.queue.put("t", body)
    await until(lambda: len(attempted) == 3)
    worker.stop()
    await running
    assert attempted == [("faulty", 1), ("good", 1), ("faulty", 2)]
    (told,) = [record for record in caplog.records if record.exc_info]
    assert "left to its lease" in told.message
    assert isinstance((told.exc_info or [None, None])[1], ZeroDivisionError)
