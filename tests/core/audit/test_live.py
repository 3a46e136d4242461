"""The audit on a working server: no false alarm, bounded steps, and nothing written."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count

from redis.asyncio import Redis

from core.audit.audit import Audit
from core.audit.entry_scanner import PAGE
from core.model.states import Status
from core.queue import Claim, NewTask, SettleResult, Task, Tube, Tubes, Worker, WorkerOptions
from core.redis.store import Argument, Store
from tests.core.audit.damages import Scene
from tests.support.audited import violations_in
from tests.support.every_verb import report_token
from tests.support.servers import Server, on_both_servers
from tests.support.stack import FLOOR, HOUR, LEASE, FakeCourier, Stack, people

pytestmark = on_both_servers

BUSY_SECONDS, LONG_BUSY_SECONDS = 2.0, 20.0


class Traffic:
    """Putters, workers that settle, release, put off, retry and die, an operator who cancels and buries, deliveries."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.settled = 0
        self._numbers = count()
        self._putting: set[str] = set()

    async def put(self) -> None:
        """Put while not too many tasks are waiting."""
        while True:
            await asyncio.sleep(0.01)
            if len(self._putting) < 200:
                drafts = [self._draft(next(self._numbers)) for _ in range(5)]
                self._putting |= set(await self.stack.queue.put_many("t", drafts))

    def _draft(self, n: int) -> NewTask:
        now = self.stack.now()
        due = now + timedelta(milliseconds=30) if n % 5 == 0 else None
        expires = now + timedelta(milliseconds=40 + n % 100) if n % 7 == 0 else None
        lane = f"lane{n % 13}" if n % 3 else ""
        return NewTask(str(n), f"tenant{n % 4}", lane, n % 6, due, expires, f"k.{n % 3}", 0, f"u{n % 9}", ["x"])

    async def handle(self, task: Task, claim: Claim) -> None:
        n = int(task.body)
        if n % 11 == 0 and task.attempts == 1:
            await self.stack.queue.release(task, due=claim.now + 20)
        elif n % 17 == 0 and task.attempts == 1:
            await self.stack.queue.settle(task, result=SettleResult.RETRY, due=claim.now + 15)
        elif n % 23:  # the others are lost: their lease runs out
            await self.stack.queue.settle(task)
            self.settled += 1

    async def operate(self) -> None:
        """Cancel, bury and kick whatever is there."""
        while True:
            await asyncio.sleep(0.005)
            if self._putting:
                task_id = self._putting.pop()
                verb = [self.stack.queue.cancel, self.stack.queue.bury, self.stack.queue.kick][hash(task_id) % 3]
                with contextlib.suppress(Exception):
                    await verb(task_id)

    async def deliver(self) -> None:
        for n in count():
            due = self.stack.now() + timedelta(milliseconds=50) if n % 2 else None
            key = (await self.stack.deliver(*people(5), deliver_at=due, lane=f"lane{n % 3}")).key
            if n % 7 == 0:
                await self.stack.deliveries.cancel(key, "university")
            await asyncio.sleep(0.04)


@contextlib.asynccontextmanager
async def traffic(stack: Stack) -> AsyncIterator[Traffic]:
    flow, pace = Traffic(stack), WorkerOptions(timedelta(milliseconds=300), FLOOR, max_tasks=8, max_entries=8)
    workers = [Worker(stack.store, "t", flow.handle, options=pace) for _ in range(3)]
    courier = await stack.courier(FakeCourier())
    verbs = [asyncio.create_task(verb()) for verb in (flow.put, flow.operate, flow.deliver)]
    running = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        yield flow
        assert not [verb for verb in verbs if verb.done()]
    finally:
        for verb in verbs:
            verb.cancel()
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)
        await stack.stop(courier)


async def test_a_busy_server_causes_no_false_alarm(server: Server, long_form: bool) -> None:
    """As many seconds as given, and longer until enough was settled and audited."""
    stack = await Stack.open(server)
    other = await Store.open(server.url)
    clock, audits = asyncio.get_running_loop().time, 0
    until = clock() + (LONG_BUSY_SECONDS if long_form else BUSY_SECONDS)
    async with traffic(stack) as flow:
        while clock() < until or flow.settled <= 100 or audits <= 2:
            assert await violations_in(other) == []
            audits += 1
    await other.close()
    await stack.close()


async def test_a_damage_on_a_busy_server_is_found_and_repaired(server: Server) -> None:
    stack = await Stack.open(server)
    scene = Scene(stack)
    await stack.queue.put("quiet", NewTask("a", lane="lane"))
    async with traffic(stack):
        await scene.damage(
            ["DEL", "queue:{0}:ready:quiet:default"], ["ZADD", "queue:{0}:due", "9999999999999", "nothing"]
        )
        assert {violation.rule for violation in await scene.violations()} == {"I3", "I4", "I6"}
        assert {"repair_lane", "repair_index"} <= set(await scene.repair())
        assert await scene.violations() == []
    assert [task.body for task in await stack.take("quiet")] == ["a"]
    await stack.close()


async def test_lost_tasks_are_counted_exactly_in_a_tube_without_changes(stack: Stack) -> None:
    """I7. Other tubes may change: the count of this one is exact and is corrected."""
    await stack.queue.put_many("still", [NewTask(str(n)) for n in range(30)])
    await stack.redis.hincrby("queue:{0}:counters", "still:put", 3)
    (found,) = await violations_in(stack.store)
    assert (found.rule, found.found, found.wanted) == (
        "I7",
        "still: 33 put, 0 ended",
        "30 put: 30 are live",
    )
    assert await Audit(stack.store).repair(found) == ["put from 33 to 30"]


async def test_a_count_is_not_repaired_after_its_tube_has_changed(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    await stack.redis.hincrby("queue:{0}:counters", "t:put", 1)
    (found,) = await violations_in(stack.store)
    await stack.queue.put("t", NewTask("b"))
    assert await Audit(stack.store).repair(found) == []
    await stack.redis.hincrby("queue:{0}:counters", "t:put", -1)


async def test_a_repair_changes_nothing_that_is_right_by_now(damaged: Scene) -> None:
    """A repair checks again before it writes."""
    await damaged.damage(["ZADD", "queue:{0}:lease", "1", "<a>"])
    found = await damaged.violations()
    await damaged.damage(["ZREM", "queue:{0}:lease", "<a>"])
    before = await lasting(damaged)
    assert [await Audit(damaged.stack.store).repair(violation) for violation in found] == [[] for _ in found]
    assert await lasting(damaged) == before


async def lasting(scene: Scene) -> list[str]:
    """The keys without a TTL."""
    return [key for key in scene.stack.server.all_keys() if await scene.stack.redis.pttl(key) == -1]


async def test_a_task_whose_lease_was_lost_is_reclaimed_later(damaged: Scene) -> None:
    await damaged.damage(["ZREM", "queue:{0}:lease", "<f>"])
    await damaged.repair()
    damaged.stack.advance_clock(timedelta(minutes=2))
    await damaged.stack.tick()
    assert [task.body for task in await damaged.stack.take(limit=10)].count("f") == 1


async def test_a_stuck_lane_goes_on_after_the_repair(damaged: Scene) -> None:
    await damaged.damage(
        ["HSET", "queue:{0}:head:t", "lane", "unserved"], ["ZREM", "queue:{0}:ready:t:default", "@lane"]
    )
    assert "a" not in [task.body for task in await damaged.stack.take(limit=10)]
    await damaged.repair()
    assert [task.body for task in await damaged.stack.take(limit=10)] == ["a"]


async def calls(client: Redis) -> dict[str, int]:
    return {name: facts["calls"] for name, facts in (await client.info("commandstats")).items()}


async def test_steps_are_bounded_and_write_nothing(stack: Stack, client: Redis, server: Server) -> None:
    """A thousand tasks in one lane, a thousand deferred: no script reads more than a page, none takes long."""
    await stack.queue.put_many("t", [NewTask(str(n), lane="long") for n in range(1000)])
    await stack.queue.put_many("t", [NewTask(str(n), due=stack.now() + HOUR) for n in range(1000)])
    before = {key: await client.dump(key) for key in ("queue:{0}:due", "queue:{0}:lane:t:long", "queue:{0}:counters")}
    asked: list[tuple[str, int]] = []
    run = stack.store.run

    async def noting(name: str, shard: int, *arguments: Argument) -> object:
        asked.append((name, len(arguments)))
        return await run(name, shard, *arguments)

    stack.store.run = noting  # type: ignore[method-assign]
    await client.config_resetstat()
    assert await violations_in(stack.store) == []
    stack.store.run = run  # type: ignore[method-assign]
    assert max(size for name, size in asked if name != "audit_keys") <= PAGE + 3
    assert max(size for name, size in asked if name == "audit_keys") <= 1000
    writes = {
        "cmdstat_hset",
        "cmdstat_zadd",
        "cmdstat_zrem",
        "cmdstat_del",
        "cmdstat_set",
        "cmdstat_xadd",
        "cmdstat_hdel",
    }
    assert writes & set(await calls(client)) == set()
    assert {key: await client.dump(key) for key in before} == before
    await client.config_set("slowlog-log-slower-than", 10_000)
    await stack.finish_all()


async def test_a_delivery_with_a_claimed_parcel_is_no_violation(stack: Stack) -> None:
    await stack.deliver(*people(3, "unserved"), channels=("unserved",))
    await stack.claim("unserved", lease=LEASE)
    assert await violations_in(stack.store) == []


async def test_an_expired_parcel_beside_a_taken_one_is_no_violation(stack: Stack) -> None:
    await stack.stop(await stack.courier(FakeCourier(parcel=1)))
    await stack.deliver(*people(2), expires_at=stack.now() + HOUR)
    (task,) = await stack.take("echo")
    stack.advance_clock(timedelta(minutes=59))
    await stack.queue.extend(task, HOUR)
    stack.advance_clock(timedelta(minutes=2))
    await stack.tick()
    assert await violations_in(stack.store) == []


async def test_a_report_after_the_end_of_a_delivery_gets_its_lifetime(stack: Stack) -> None:
    """Found by the audit: the first outcome of a cancelled delivery had no TTL."""
    key = (await stack.deliver(*people(1, "unserved"), channels=("unserved",))).key
    token = await report_token(stack, key, "unserved")
    await stack.deliveries.cancel(key, "university")
    await stack.deliveries.record_report(token, Status.DELIVERED, "1")
    assert await violations_in(stack.store) == []


async def test_a_lower_limit_of_attempts_is_no_violation_for_earlier_attempts(stack: Stack) -> None:
    """Found by the state machine: a task with two attempts violated I12 after its tube allowed only one."""
    await Tubes(stack.store).create(Tube("t", attempts=5))
    await stack.queue.put("t", NewTask(""))
    for _ in range(2):
        (task,) = await stack.take()
        await stack.queue.settle(task, result=SettleResult.RETRY)
    await Tubes(stack.store).create(Tube("t", attempts=1))
    await stack.audit()
    (task,) = await stack.take()
    assert await stack.queue.settle(task, result=SettleResult.RETRY) == "buried"


async def test_an_import_that_is_still_checked_is_no_violation(stack: Stack) -> None:
    """`--repair` would keep its lock for ever, if its process died: nothing could be written to the directory."""
    await stack.store.run_for_tenant("begin_import", "t", "token", "users", 2, 30_000)
    await stack.store.run_for_tenant("journal_import", "t", "token", 0, "page", 1, 30_000)
    assert await violations_in(stack.store) == []
    await stack.store.run_for_tenant("abort_import", "t", "token")
