"""A claimed task is held by its token alone; time takes back what nobody speaks for."""

import asyncio
from datetime import timedelta

import pytest

from core.errors import Conflict, NotFound
from core.queue import Claim, Settlement, Task
from core.worker import Pace, Worker
from tests.core.audit import dump
from tests.core.house import FLOOR, HOUR, LEASE, House
from tests.servers import on_both_servers
from tests.waiting import until

pytestmark = on_both_servers
MINUTE = timedelta(minutes=1)


async def kept(house: House) -> dict[str, object]:
    """Everything on the server but for the keys that end by themselves within seconds."""
    return {key: kept.value for key, kept in (await dump(house.server.url)).items() if kept.pttl < 0}


async def lost_and_taken_again(house: House, lane: str = "") -> tuple[Task, Task]:
    """A task whose first holder froze, and the same task with its second holder."""
    await house.queue.put("t", "a", lane=lane)
    (first,) = await house.take(owner="frozen")
    house.passes(LEASE + MINUTE)
    (second,) = await house.take(owner="next")
    assert (first.id, second.body) == (second.id, "a")
    return first, second


@pytest.mark.row("K-30")
@pytest.mark.parametrize("lane", ["", "lane"])
async def test_an_old_token_changes_nothing(house: House, lane: str) -> None:
    first, second = await lost_and_taken_again(house, lane)
    before = await kept(house)
    assert await house.queue.settle(first) == "stale"
    assert await house.queue.settle(first, result="retry", due=1) == "stale"
    assert await house.queue.release(first) == "stale"
    assert not (await house.queue.extend(first, HOUR, checkpoint="mine")).held
    assert await kept(house) == before
    assert await house.queue.settle(second) == "done"


@pytest.mark.row("K-30")
async def test_a_task_that_was_settled_knows_its_token_no_more(house: House) -> None:
    await house.queue.put("t", "a")
    (task,) = await house.take()
    await house.queue.settle(task)
    before = await kept(house)
    assert await house.queue.settle(task) == "stale"
    assert await house.queue.release(task) == "stale"
    assert not (await house.queue.extend(task, HOUR)).held
    assert await kept(house) == before


async def test_the_token_of_one_who_gave_the_task_back_is_old(house: House) -> None:
    await house.queue.put("t", "a")
    (first,) = await house.take()
    await house.queue.release(first)
    assert await house.queue.settle(first) == "stale"
    (second,) = await house.take()
    assert await house.queue.settle(first) == "stale"
    assert await house.queue.settle(second) == "done"


async def test_every_claim_has_a_token_of_its_own_that_is_greater_than_those_before(house: House) -> None:
    await house.queue.put("t", "a")
    tokens = []
    for _ in range(4):
        (task,) = await house.take()
        tokens.append(int(task.token))
        await house.queue.release(task)
    assert tokens == sorted(set(tokens))


@pytest.mark.row("K-33")
async def test_an_extended_lease_holds_and_its_checkpoint_comes_to_the_next_holder(house: House) -> None:
    await house.queue.put("t", "a")
    (task,) = await house.take()
    assert (await house.queue.extend(task, 2 * HOUR, checkpoint="page 7")).held
    house.passes(HOUR)
    assert await house.take() == []
    house.passes(2 * HOUR)
    (again,) = await house.take()
    assert (again.checkpoint, again.crashed) == ("page 7", True)


@pytest.mark.row("K-30")
async def test_attempts_are_counted_at_the_claim_and_what_was_given_back_was_none(house: House) -> None:
    await house.queue.put("t", "a")
    (task,) = await house.take()
    assert task.attempts == 1
    await house.queue.release(task)
    (task,) = await house.take()
    assert task.attempts == 1
    house.passes(HOUR)
    (task,) = await house.take()
    assert task.attempts == 2


@pytest.mark.row("K-43")
@pytest.mark.parametrize("lane", ["", "lane"])
async def test_a_task_that_kills_its_workers_is_buried_after_its_last_attempt(house: House, lane: str) -> None:
    task_id = await house.queue.put("t", "poison", lane=lane, attempts=3)
    await house.queue.put("t", "harmless", lane=lane)
    for attempt in (1, 2, 3):
        (poison,) = await house.take(lease=MINUTE)
        assert (poison.body, poison.attempts) == ("poison", attempt)
        house.passes(2 * MINUTE)
    assert await house.finish_all() == ["harmless"]
    assert await house.state(task_id) == "buried"
    await house.queue.kick(task_id)
    (kicked,) = await house.take(limit=10)
    assert (kicked.body, kicked.attempts) == ("poison", 1)


@pytest.mark.row("K-43")
async def test_how_many_attempts_a_task_has_is_a_setting_of_the_installation(house: House) -> None:
    await house.redis.hset("settings:{0}", "max_attempts", "2")
    task_id = await house.queue.put("t", "poison")
    for _ in range(2):
        await house.take(lease=MINUTE)
        house.passes(2 * MINUTE)
    await house.tick()
    assert await house.state(task_id) == "buried"


@pytest.mark.row("K-34")
async def test_what_is_under_way_cannot_be_buried_and_what_is_not_buried_not_kicked(house: House) -> None:
    task_id = await house.queue.put("t", "a")
    with pytest.raises(Conflict) as refused:
        await house.queue.kick(task_id)
    assert refused.value.code == "TASK_NOT_BURIED"
    await house.take()
    with pytest.raises(Conflict) as refused:
        await house.queue.bury(task_id)
    assert refused.value.code == "TASK_TAKEN"


async def test_a_task_that_ended_or_never_was_is_not_found(house: House) -> None:
    task_id = await house.queue.put("t", "a")
    await house.queue.cancel(task_id)
    for name in (task_id, "0.nothing", "nonsense", "9.1.x"):
        for ask in (house.queue.peek, house.queue.cancel, house.queue.bury, house.queue.kick):
            with pytest.raises(NotFound):
                await ask(name)


@pytest.mark.row("K-02", "K-03")
async def test_what_is_not_taken_in_time_is_expired_and_counted(house: House) -> None:
    for number in range(5):
        await house.queue.put("t", str(number), expires=house.now() + number * MINUTE + MINUTE / 2)
    house.passes(2 * MINUTE)
    assert await house.finish_all() == ["2", "3", "4"]
    assert (await house.queue.stats())["tubes"]["t"]["expired"] == 2


@pytest.mark.row("K-03")
async def test_nothing_is_handed_out_after_its_expiry_however_much_has_expired(house: House) -> None:
    """I10. A tick expires a page of a hundred; what was beyond the page was claimed."""
    end = house.now() + MINUTE
    await asyncio.gather(*(house.queue.put("t", str(number), expires=end) for number in range(250)))
    await asyncio.gather(*(house.queue.put("t", "laned", lane=f"{number}", expires=end) for number in range(100)))
    await house.queue.put("t", "last")
    house.passes(HOUR)
    assert await house.finish_all() == ["last"]
    assert (await house.queue.stats())["tubes"]["t"]["expired"] == 350


@pytest.mark.row("K-04")
async def test_a_taken_task_is_not_removed_by_expiry_but_when_its_lease_is_lost(house: House) -> None:
    await house.queue.put("t", "a", expires=house.now() + MINUTE)
    (task,) = await house.take(lease=HOUR)
    house.passes(2 * MINUTE)
    await house.tick()
    assert (await house.queue.extend(task, HOUR)).held
    house.passes(2 * HOUR)
    assert await house.take() == []


@pytest.mark.row("K-06", "K-07")
async def test_deferred_tasks_are_invisible_until_due_and_all_takeable_then(house: House) -> None:
    at = house.now() + HOUR
    await asyncio.gather(*(house.queue.put("t", str(number), due=at) for number in range(250)))
    assert await house.take(limit=300) == []
    house.passes(HOUR)
    assert sorted(await house.finish_all()) == sorted(map(str, range(250)))


@pytest.mark.row("K-07")
async def test_a_tick_is_bounded_and_says_that_there_is_more(house: House) -> None:
    at = house.now() + HOUR
    await asyncio.gather(*(house.queue.put("t", str(number), due=at) for number in range(250)))
    house.passes(HOUR)
    takeable = []
    for _ in range(3):
        claim = await house.claim("nobody's", 0)
        takeable.append(await house.redis.zcard("queue:{0}:ready:t:default"))
        assert claim.next_at <= claim.now or takeable[-1] == 250
    assert takeable == [100, 200, 250]


@pytest.mark.row("K-23")
async def test_ids_sort_by_time_and_do_not_collide(house: House) -> None:
    ids = [await house.queue.put("t", "a") for _ in range(50)]
    ids += await asyncio.gather(*(house.queue.put("t", "a") for _ in range(200)))
    assert len(set(ids)) == 250
    assert ids[:50] == sorted(ids[:50])


@pytest.mark.row("K-11")
async def test_looking_changes_nothing(house: House) -> None:
    task_id = await house.queue.put("t", "a", lane="lane", expires=house.now() + HOUR)
    await house.queue.put("t", "b", lane="lane", due=house.now() + HOUR)
    before = await kept(house)
    await house.queue.peek(task_id)
    await house.queue.list(tube="t", state=None, tenant=None, cursor=None, limit=10)
    await house.queue.stats()
    assert await kept(house) == before


@pytest.mark.row("K-30")
async def test_a_fault_of_a_handler_leaves_its_task_to_the_lease_and_stops_nobody_else(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    attempted: list[tuple[str, int]] = []

    async def handle(task: Task, claim: Claim) -> Settlement:
        attempted.append((task.body, task.attempts))
        if (task.body, task.attempts) == ("faulty", 1):
            raise ZeroDivisionError("of the handler")
        return Settlement()

    worker = Worker(house.store, "t", handle, pace=Pace(lease=timedelta(seconds=0.4), floor=FLOOR))
    running = asyncio.create_task(worker.run())
    for body in ("faulty", "good"):
        await house.queue.put("t", body)
    await until(lambda: len(attempted) == 3)
    worker.stop()
    await running
    assert attempted == [("faulty", 1), ("good", 1), ("faulty", 2)]
    (told,) = [record for record in caplog.records if record.exc_info]
    assert "left to its lease" in told.message
    assert isinstance((told.exc_info or [None, None])[1], ZeroDivisionError)
