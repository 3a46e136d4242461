"""The audit beside a server at work: no false alarm, bounded steps, and nothing written."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count

import pytest
from redis.asyncio import Redis

from core.audit import Audit
from core.queue import Claim, Task
from core.store import Argument, Store
from core.tasks import Draft
from core.tubes import Tube, Tubes
from core.walk import PAGE
from core.words import Status
from core.worker import Pace, Worker
from tests.audit.damages import Scene
from tests.core.audit import broken
from tests.core.house import FLOOR, HOUR, LEASE, House, Played, people
from tests.core.tour import receipt
from tests.servers import Server, on_both_servers

pytestmark = [pytest.mark.row("K-44"), on_both_servers]

BUSY_SECONDS = 5.0


class Traffic:
    """Putters, workers that settle, release, put off, retry and die, an operator who cancels and buries, deliveries."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.settled = 0
        self._numbers = count()
        self._putting: set[str] = set()

    async def put(self) -> None:
        """As long as not too many are waiting: each is to be seen moving."""
        while True:
            await asyncio.sleep(0.01)
            if len(self._putting) < 200:
                drafts = [self._draft(next(self._numbers)) for _ in range(5)]
                self._putting |= set(await self.house.queue.put_many("t", drafts))

    def _draft(self, n: int) -> Draft:
        now = self.house.now()
        due = now + timedelta(milliseconds=30) if n % 5 == 0 else None
        expires = now + timedelta(milliseconds=40 + n % 100) if n % 7 == 0 else None
        lane = f"lane{n % 13}" if n % 3 else ""
        return Draft(str(n), f"tenant{n % 4}", lane, n % 6, due, expires, f"k.{n % 3}", 0, f"u{n % 9}", ["x"])

    async def handle(self, task: Task, claim: Claim) -> None:
        n = int(task.body)
        if n % 11 == 0 and task.attempts == 1:
            await self.house.queue.release(task, due=claim.now + 20)
        elif n % 17 == 0 and task.attempts == 1:
            await self.house.queue.settle(task, result="retry", due=claim.now + 15)
        elif n % 23:  # the others are lost: their lease runs out
            await self.house.queue.settle(task)
            self.settled += 1

    async def operate(self) -> None:
        """Cancel, bury and kick whatever is there."""
        while True:
            await asyncio.sleep(0.005)
            if self._putting:
                task_id = self._putting.pop()
                verb = [self.house.queue.cancel, self.house.queue.bury, self.house.queue.kick][hash(task_id) % 3]
                with contextlib.suppress(Exception):
                    await verb(task_id)

    async def deliver(self) -> None:
        for n in count():
            due = self.house.now() + timedelta(milliseconds=50) if n % 2 else None
            key = (await self.house.deliver(*people(5), deliver_at=due, lane=f"lane{n % 3}")).key
            if n % 7 == 0:
                await self.house.histories.cancel(key, "university")
            await asyncio.sleep(0.04)


@contextlib.asynccontextmanager
async def traffic(house: House) -> AsyncIterator[Traffic]:
    flow, pace = Traffic(house), Pace(timedelta(milliseconds=300), FLOOR, tasks=8, entries=8)
    workers = [Worker(house.store, "t", flow.handle, pace=pace) for _ in range(3)]
    courier = await house.courier(Played())
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
        await house.stop(courier)


async def test_beside_a_busy_server_there_is_no_false_alarm(server: Server) -> None:
    house = await House.open(server)
    other = await Store.open(server.url)
    until, audits = asyncio.get_running_loop().time() + BUSY_SECONDS, 0
    async with traffic(house) as flow:
        while asyncio.get_running_loop().time() < until:
            assert await broken(other) == []
            audits += 1
    assert flow.settled > 100
    assert audits > 2
    await other.close()
    await house.close()


async def test_a_damage_beside_a_busy_server_is_found_and_mended(server: Server) -> None:
    house = await House.open(server)
    scene = Scene(house)
    await house.queue.put("quiet", "a", lane="lane")
    async with traffic(house):
        await scene.damage(
            ["DEL", "queue:{0}:ready:quiet:default"], ["ZADD", "queue:{0}:due", "9999999999999", "nothing"]
        )
        assert {violation.rule for violation in await scene.broken()} == {"I3", "I4", "I6"}
        assert {"mend_lane", "mend_index"} <= set(await scene.repair())
        assert await scene.broken() == []
    assert [task.body for task in await house.take("quiet")] == ["a"]
    await house.close()


async def test_lost_tasks_are_told_exactly_where_their_tube_is_still(house: House) -> None:
    """I7. Other tubes may flow: the count of this one is exact, and is corrected."""
    await house.queue.put_many("still", [Draft(str(n)) for n in range(30)])
    await house.redis.hincrby("queue:{0}:counters", "still:put", 3)
    (found,) = await broken(house.store)
    assert (found.rule, found.found, found.wanted) == (
        "I7",
        "still: 33 put, 0 ended",
        "30 put, as 30 are there",
    )
    assert await Audit(house.store).mend(found) == ["put from 33 to 30"]


async def test_a_count_is_not_mended_once_its_tube_has_moved(house: House) -> None:
    await house.queue.put("t", "a")
    await house.redis.hincrby("queue:{0}:counters", "t:put", 1)
    (found,) = await broken(house.store)
    await house.queue.put("t", "b")
    assert await Audit(house.store).mend(found) == []
    await house.redis.hincrby("queue:{0}:counters", "t:put", -1)


async def test_what_was_mended_by_itself_is_left_alone(damaged: Scene) -> None:
    """A repair looks again: what is in order by then is not touched."""
    await damaged.damage(["ZADD", "queue:{0}:lease", "1", "<a>"])
    found = await damaged.broken()
    await damaged.damage(["ZREM", "queue:{0}:lease", "<a>"])
    before = await lasting(damaged)
    assert [await Audit(damaged.house.store).mend(violation) for violation in found] == [[] for _ in found]
    assert await lasting(damaged) == before


async def lasting(scene: Scene) -> list[str]:
    """The keys that do not go by themselves."""
    return [key for key in scene.house.server.all_keys() if await scene.house.redis.pttl(key) == -1]


async def test_a_task_without_its_lease_is_taken_back_by_time(damaged: Scene) -> None:
    await damaged.damage(["ZREM", "queue:{0}:lease", "<f>"])
    await damaged.repair()
    damaged.house.passes(timedelta(minutes=2))
    await damaged.house.tick()
    assert [task.body for task in await damaged.house.take(limit=10)].count("f") == 1


async def test_a_lane_that_was_stuck_goes_on(damaged: Scene) -> None:
    await damaged.damage(
        ["HSET", "queue:{0}:front:t", "lane", "nobody"], ["ZREM", "queue:{0}:ready:t:default", "@lane"]
    )
    assert "a" not in [task.body for task in await damaged.house.take(limit=10)]
    await damaged.repair()
    assert [task.body for task in await damaged.house.take(limit=10)] == ["a"]


async def calls(client: Redis) -> dict[str, int]:
    return {name: facts["calls"] for name, facts in (await client.info("commandstats")).items()}


async def test_steps_are_bounded_and_write_nothing(house: House, client: Redis, server: Server) -> None:
    """A thousand tasks in one lane, a thousand deferred: no script sees more than a page, none takes long."""
    await house.queue.put_many("t", [Draft(str(n), lane="long") for n in range(1000)])
    await house.queue.put_many("t", [Draft(str(n), due=house.now() + HOUR) for n in range(1000)])
    before = {key: await client.dump(key) for key in ("queue:{0}:due", "queue:{0}:lane:t:long", "queue:{0}:counters")}
    asked: list[tuple[str, int]] = []
    run = house.store.run

    async def noting(name: str, shard: int, *arguments: Argument) -> object:
        asked.append((name, len(arguments)))
        return await run(name, shard, *arguments)

    house.store.run = noting  # type: ignore[method-assign]
    await client.config_resetstat()
    await client.config_set("slowlog-log-slower-than", 50_000)
    await client.slowlog_reset()
    assert await broken(house.store) == []
    house.store.run = run  # type: ignore[method-assign]
    assert max(size for name, size in asked if name != "audit_keys") <= PAGE + 3
    assert max(size for name, size in asked if name == "audit_keys") <= 1000
    assert await client.slowlog_get() == []
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
    await house.finish_all()


async def test_a_delivery_is_judged_while_its_claim_is_held(house: House) -> None:
    await house.deliver(*people(3, "nobody"), channels=("nobody",))
    await house.claim("nobody", lease=LEASE)
    assert await broken(house.store) == []


async def test_a_parcel_that_expired_beside_one_that_is_taken_is_no_violation(house: House) -> None:
    await house.stop(await house.courier(Played(parcel=1)))
    await house.deliver(*people(2), expires_at=house.now() + HOUR)
    (task,) = await house.take("echo")
    house.passes(timedelta(minutes=59))
    await house.queue.extend(task, HOUR)
    house.passes(timedelta(minutes=2))
    await house.tick()
    assert await broken(house.store) == []


async def test_what_a_report_writes_after_the_end_has_the_end_of_its_delivery(house: House) -> None:
    """Found by the audit: the first outcome of a delivery that was cancelled stayed for ever."""
    key = (await house.deliver(*people(1, "nobody"), channels=("nobody",))).key
    token = await receipt(house, key, "nobody")
    await house.histories.cancel(key, "university")
    await house.histories.receive(token, Status.DELIVERED, "1")
    assert await broken(house.store) == []


@pytest.mark.row("K-44")
async def test_a_tube_that_allows_fewer_attempts_from_now_on_makes_no_violation(house: House) -> None:
    """Found by the machine: what had been tried twice was said to be tried too often when its tube came down to one."""
    await Tubes(house.store).create(Tube("t", attempts=5))
    await house.queue.put("t", "")
    for _ in range(2):
        (task,) = await house.take()
        await house.queue.settle(task, result="retry")
    await Tubes(house.store).create(Tube("t", attempts=1))
    await house.audit()
    (task,) = await house.take()
    assert await house.queue.settle(task, result="retry") == "buried"
