"""A queue over several shards behaves as one queue: throttles, cancelling, search, pace, weights, statistics."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from core.errors import Invalid, NotFound
from core.model.delivery import Repeat, Sender
from core.monitoring.bulk_changes import ChangedLetters, DeadLetters
from core.queue import CancelResult, Claim, NewTask, Settlement, Task, TaskFilter, Tube, Tubes
from core.queue.task import ClaimRequest
from core.queue.workers.heartbeat import Heartbeat
from core.queue.workers.worker import Worker, WorkerOptions
from core.redis.keys import KEYS
from tests.support.servers import Server
from tests.support.stack import FLOOR, HOUR, LEASE, Stack, order, person
from tests.support.waiting import until

SHARDS = (0, 1, 2)
MINUTE = timedelta(minutes=1)
SELECTED = [TaskFilter(user="u"), TaskFilter(lane="l"), TaskFilter(kind="k"), TaskFilter(tag="x")]


@pytest.fixture
async def stack(clean_server: Server) -> AsyncIterator[Stack]:
    opened = await Stack.open(clean_server, shards=len(SHARDS))
    yield opened
    try:
        await opened.end_everything()
    finally:
        await opened.close()


async def put(stack: Stack, count: int = 1, **fields: Any) -> list[str]:
    """Put `count` tasks in each shard. A task's body is its shard. Returns the ids."""
    return [
        task_id
        for shard in SHARDS
        for task_id in await stack.queue.put_many("t", [NewTask(str(shard), **fields)] * count, shard=shard)
    ]


async def claim(stack: Stack, shard: int, limit: int = 100, account: str = "") -> Claim:
    return await stack.queue.claim(shard, ClaimRequest("t", "worker", limit, LEASE, FLOOR, account))


async def take(stack: Stack, limit: int = 100) -> list[Task]:
    """Take up to `limit` tasks from each shard."""
    return [task for shard in SHARDS for task in (await claim(stack, shard, limit)).tasks]


async def finish(stack: Stack, tasks: Sequence[Task]) -> None:
    states = await stack.settle_all([(task, Settlement()) for task in tasks])
    assert set(states) <= {"done", "ready"}  # a parcel whose entries are open is ready again


@pytest.mark.parametrize("scope", ["account", "method"])
async def test_a_throttle_of_an_account_applies_in_every_shard(stack: Stack, scope: str) -> None:
    await put(stack)
    await stack.queue.throttle("t", f"{scope}:ada", MINUTE)
    for shard in SHARDS:
        found = await claim(stack, shard, account="ada")
        assert (list(found.tasks), found.throttles) == ([], 1)
        assert 50_000 < found.opens_at - found.now <= 60_000
    stack.advance_clock(MINUTE)
    assert [len((await claim(stack, shard, account="ada")).tasks) for shard in SHARDS] == [1, 1, 1]


async def test_a_throttle_of_a_chat_is_visible_in_every_shard(stack: Stack) -> None:
    await stack.queue.throttle("t", "chat:5", MINUTE)
    assert [list(await stack.queue.throttles("t", shard, ["chat:5"])) for shard in SHARDS] == [["chat:5"]] * 3


async def test_a_task_is_found_and_cancelled_by_its_id_in_its_shard(stack: Stack) -> None:
    ids = await put(stack, 2)
    for task_id in ids[::2]:
        assert (await stack.queue.inspector.peek(task_id)).id == task_id
        assert await stack.queue.cancel(task_id) == CancelResult(1, 0)
        with pytest.raises(NotFound):
            await stack.queue.inspector.peek(task_id)
    assert [task.task_id for task in await take(stack)] == ids[1::2]


async def test_a_task_is_buried_and_kicked_by_its_id_in_its_shard(stack: Stack) -> None:
    for task_id in await put(stack):
        assert (await stack.queue.bury(task_id)).state == "buried"
        assert (await stack.queue.kick(task_id)).state == "ready"


@pytest.mark.parametrize(
    "selected", [TaskFilter(user="u"), TaskFilter(lane="l"), TaskFilter(kind="k"), TaskFilter(tag="x")], ids=str
)
async def test_cancel_by_ends_and_flags_the_selected_tasks_of_every_shard(stack: Stack, selected: TaskFilter) -> None:
    await put(stack, 3, user="u", lane=selected.lane, kind="k", tags=["x"])
    others = await put(stack, user="v", kind="j", tags=["y"], priority=9)
    taken = [task for task in await take(stack, 1) if task.user == "u"]
    if selected.lane:  # all stand in one shard, and one is taken
        await finish(stack, [task for task in await take(stack) if task.user == "v"])
        others = []
    assert await stack.queue.cancel_by(selected) == CancelResult(9 - len(taken), len(taken))
    assert [(await stack.queue.extend(task, LEASE)).cancelled for task in taken] == [True] * len(taken)
    assert [task.task_id for task in await take(stack)] == others


async def test_a_search_returns_the_tasks_of_every_shard(stack: Stack) -> None:
    ids = await put(stack, 3, user="u")
    await put(stack, user="v")
    assert [task.id for task in await stack.queue.inspector.select(TaskFilter(user="u"))] == ids


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9, 10])
async def test_the_pages_of_a_search_neither_overlap_nor_skip_where_a_shard_ends(stack: Stack, size: int) -> None:
    ids = await put(stack, 3, user="u")
    found, cursor = list[str](), None
    while True:
        tasks, cursor = await stack.queue.inspector.page(TaskFilter(user="u"), cursor, size)
        assert len(tasks) <= size
        found += [task.id for task in tasks]
        if cursor is None:
            break
    assert found == ids


async def test_the_pages_of_the_list_cover_every_shard(stack: Stack) -> None:
    ids, found, cursor = await put(stack, 20), set[str](), None
    while True:
        page = await stack.queue.inspector.list(TaskFilter(tube="t"), cursor, 10)
        found |= {task.id for task in page.tasks}
        cursor = page.cursor
        if cursor is None:
            break
    assert found == set(ids)


async def test_a_malformed_cursor_of_the_list_is_refused(stack: Stack) -> None:
    for cursor in ("2-0", "nonsense", "k8AAwA", "!"):
        with pytest.raises(Invalid):
            await stack.queue.inspector.list(TaskFilter(), cursor, 10)


async def test_the_pace_of_a_tube_applies_to_all_shards_together(stack: Stack) -> None:
    """At 30 tasks per second. Each shard may save up one task, and loses what it is not asked for in time."""
    await Tubes(stack.store).create(Tube("t", pace=30))
    assert (await Tubes(stack.store).get("t")).pace == 30
    await put(stack, 100)
    started, ended, taken = 0, 0, Counter[int]()
    for _ in range(200):
        for shard in SHARDS:
            found = await claim(stack, shard)
            taken[shard] += len(found.tasks)
            started, ended = started or found.now, found.now
            await finish(stack, found.tasks)
        stack.advance_clock(timedelta(milliseconds=10))
    allowed = 30 * (ended - started) / 1000
    assert 0.5 * allowed <= taken.total() <= allowed + len(SHARDS)
    assert max(taken.values()) - min(taken.values()) <= 5, "a busy machine asks one of them late more often"


async def test_the_weight_of_a_tenant_applies_in_every_shard(stack: Stack) -> None:
    await Tubes(stack.store).set_weight("heavy", 3)
    for tenant in ("heavy", "light"):
        await put(stack, 40, tenant=tenant)
    for shard in SHARDS:
        tenants = Counter(task.tenant for task in (await claim(stack, shard, 40)).tasks)
        assert abs(tenants["heavy"] - 30) <= 2, shard


async def test_statistics_kick_and_purge_cover_every_shard(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", keep=HOUR))
    ids = await put(stack, 4)
    for task_id in ids[::4]:
        await stack.queue.bury(task_id)
    await finish(stack, await take(stack, 2))
    await put(stack, due=stack.now() + HOUR)
    stats = await stack.queue.inspector.stats()
    assert (stats.buried, stats.finished, stats.due, stats.taken) == (3, 6, 3, 0)
    tube = stats.tubes["t"]
    assert (tube.put, tube.done, tube.live, tube.states.ready, tube.states.waiting) == (15, 6, 9, 3, 3)
    assert await stack.queue.kick_some("t", 2) == 2
    assert await stack.queue.kick_some("t", 2) == 1
    assert await stack.queue.purge("t") == 6
    assert (await stack.queue.inspector.stats()).finished == 0


@pytest.mark.parametrize("shard", SHARDS)
async def test_the_oldest_ready_task_is_looked_for_in_every_shard(stack: Stack, shard: int) -> None:
    await stack.queue.put_many("t", [NewTask("old")], shard=shard)
    stack.advance_clock(HOUR)
    await put(stack)
    assert (await stack.queue.inspector.stats()).tubes["t"].oldest_ms >= HOUR / timedelta(milliseconds=1)


async def test_a_lane_is_strict_over_all_shards(stack: Stack) -> None:
    """Its tasks, and its deliveries whatever their senders and Idempotency-Keys, stand in one shard."""
    shard = stack.store.shard_of("chat 7")
    await stack.queue.put("t", NewTask("0", lane="chat 7"))
    ids = await stack.queue.put_many("t", [NewTask(str(n), lane="chat 7") for n in range(1, 8)], shard=(shard + 1) % 3)
    assert {task_id.partition(".")[0] for task_id in ids} == {str(shard)}
    orders = [order(person(n), lane="chat 7", sender=Sender(n)) for n in range(8)]
    keys = {(await stack.deliveries.enqueue(one, Repeat(str(one.sender.id), ""))).key.shard for one in orders}
    assert keys == {shard}
    for tube in ("t", "echo"):
        wanted = ClaimRequest(tube, "w", 9, LEASE, FLOOR)
        taken = [task for number in SHARDS for task in (await stack.queue.claim(number, wanted)).tasks]
        assert len(taken) == 1
        await finish(stack, taken)


async def test_a_shard_that_fails_holds_up_no_other(stack: Stack, caplog: pytest.LogCaptureFixture) -> None:
    """Neither claims, nor leases, of which some stand in the shard that fails."""
    await put(stack, 3)
    held = {task.shard: task for task in await take(stack, 1)}
    await stack.redis.rename(KEYS["counters"].at(1), "set aside")
    await stack.redis.set(KEYS["counters"].at(1), "damaged")
    await stack.redis.rename(KEYS["lease"].at(1), "leases set aside")
    await stack.redis.set(KEYS["lease"].at(1), "damaged")
    heartbeat = Heartbeat(stack.store, timedelta(seconds=1), HOUR)
    for task in held.values():
        heartbeat.add(task, time.monotonic())
    started = {shard: heartbeat.lease_end(task) for shard, task in held.items()}
    heartbeat.start()
    handled: list[str] = []

    async def handle(task: Task, claim: Claim) -> Settlement:
        handled.append(task.body)
        return Settlement()

    worker = Worker(stack.store, "t", handle, options=WorkerOptions(max_sleep=FLOOR))
    running = asyncio.create_task(worker.run())
    await until(lambda: sorted(handled) == ["0", "0", "2", "2"])
    await until(lambda: all(heartbeat.lease_end(held[shard]) > started[shard] for shard in (0, 2)))
    await stack.queue.put("t", NewTask("2"), shard=2)
    await until(lambda: handled.count("2") == 3)
    await stack.redis.rename("set aside", KEYS["counters"].at(1))
    await stack.redis.rename("leases set aside", KEYS["lease"].at(1))
    await until(lambda: handled.count("1") == 2)
    worker.stop()
    await running
    heartbeat.stop()
    assert caplog.text.count("no claim") == 1
    await finish(stack, list(held.values()))


async def test_a_long_backlog_in_one_shard_does_not_hold_up_the_others(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("0")] * 200, shard=0)
    await stack.queue.put_many("t", [NewTask("2")] * 5, shard=2)
    handled: list[str] = []

    async def handle(task: Task, claim: Claim) -> Settlement:
        handled.append(task.body)
        return Settlement()

    worker = Worker(stack.store, "t", handle, options=WorkerOptions(max_tasks=1, max_entries=1))
    running = asyncio.create_task(worker.run())
    await until(lambda: handled.count("2") == 5)
    worker.stop()
    await running
    assert handled.count("0") < 100
    await stack.finish_all()


async def test_tasks_without_a_lane_that_are_put_together_stand_in_one_shard(stack: Stack) -> None:
    """So that a worker finds full pages; those that are put at other times stand anywhere."""
    used: set[str] = set()
    for _ in range(40):
        found = {
            shard_of(task) for task in await asyncio.gather(*(stack.queue.put("t", NewTask("x")) for _ in range(3)))
        }
        assert len(found) == 1
        used |= found
    assert len(used) > 1
    many = [shard_of(task) for task in await stack.queue.put_many("t", [NewTask("x")] * 500)]
    assert [len(set(page)) for page in (many[:200], many[200:400], many[400:])] == [1, 1, 1]
    assert len(set(many)) == 3


def shard_of(task_id: str) -> str:
    return task_id.partition(".")[0]


async def test_a_tube_is_paused_and_resumed_in_every_shard(stack: Stack) -> None:
    tubes = Tubes(stack.store)
    await put(stack)
    assert await tubes.pause("t", "Anna", "the provider is down")
    assert await take(stack) == []
    assert await tubes.resume("t")
    await finish(stack, tasks := await take(stack))
    assert [task.body for task in tasks] == ["0", "1", "2"]


async def test_what_is_set_for_a_tube_or_a_tenant_and_taken_back_stands_alike_in_every_shard(stack: Stack) -> None:
    tubes = Tubes(stack.store)

    async def stored() -> list[list[dict[str, str]]]:
        names = ("options", "weights")
        return [[await stack.store.command("HGETALL", KEYS[name].at(shard)) for name in names] for shard in SHARDS]

    before = await stored()
    await tubes.create(Tube("t", HOUR, 3, "park", 20.0, HOUR))
    await tubes.set_weight("school-A", 3)
    await tubes.pause("t", "Anna", "the provider is down")
    first, *others = await stored()
    assert all(first)
    assert others == [first] * 2
    await tubes.resume("t")
    await tubes.set_weight("school-A", 1)
    await tubes.create(Tube("t"))
    backoff = {f"t:{name}": value for name, value in Tube("t").options(len(SHARDS)).items() if value}
    assert await stored() == [[{**options, **backoff}, weights] for options, weights in before]


async def test_no_more_tasks_of_a_group_are_changed_than_the_operator_has_seen(stack: Stack) -> None:
    letters = DeadLetters(stack.store)
    for task_id in await put(stack, 3):
        await stack.queue.bury(task_id)
    (group,) = await letters.groups()
    before = int((stack.now() + MINUTE).timestamp() * 1000)
    assert await letters.kick(group.name, before, 4) == ChangedLetters(4, 0)
    assert await letters.drop(group.name, before, 2) == ChangedLetters(2, 0)
    assert [one.size for one in await letters.groups()] == [9 - 4 - 2]
