"""A replica without the last writes is promoted: no word of an old worker counts, no lease ends at once, and a call
that meets the replica before its promotion waits for it.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from core.answers import OpenQuestions
from core.errors import StoreRefuses, StoreUnavailable
from core.model.content import Feature
from core.model.durability import Durability
from core.model.history_key import HistoryKey
from core.model.states import Status
from core.queue import Claim, NewTask, Queue
from core.queue.task import ClaimRequest
from core.queue.workers.heartbeat import Heartbeat
from core.redis.connection import encoded
from core.redis.keys import KEYS
from core.redis.primary import GRACE_MS
from core.redis.refusals import may_pass, refused_write
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from couriers.sending.interface import NEVER
from couriers.sending.parcel import Parcel
from tests.core.answers.test_answers import COMING, asking
from tests.support.delivery_progress import Gate, statuses
from tests.support.servers import Server
from tests.support.stack import FLOOR, HOUR, LEASE, TENANT, FakeCourier, Stack, people, person
from tests.support.waiting import until
from tests.system.crash.cuttable_link import CuttableLink

NEARLY_OVER = timedelta(milliseconds=GRACE_MS - 500)
"""A lease that its worker cannot extend before it ends."""


@dataclass
class Pair:
    """A primary and its replica. `link` leads to the primary, then to the promoted replica."""

    primary: Server
    replica: Server
    link: CuttableLink
    plain: Redis
    """A client of the replica."""

    @property
    def url(self) -> str:
        return self.primary.url_through(self.link.port)

    async def lose_writes(self) -> None:
        """What the primary writes from now on does not reach the replica."""
        self.replica.pause()
        async with Redis.from_url(self.primary.url) as primary:
            await primary.client_kill_filter(_type="replica")

    async def promote(self) -> None:
        await self.plain.replicaof("NO", "ONE")

    async def refusals(self) -> int:
        """How many calls the replica has refused."""
        stats = await self.plain.info("errorstats")
        return int(stats.get("errorstat_READONLY", {}).get("count", 0))


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    primary, replica = Server(tmp_path / "primary"), Server(tmp_path / "replica")
    for one in (primary, replica):
        one.start()
    link = CuttableLink(primary.place.port)
    await link.start()
    async with Redis.from_url(primary.url) as client:
        await client.config_set("repl-diskless-sync-delay", 0)
    plain = Redis.from_url(replica.url.replace(replica.place.password, primary.place.password))
    async with Redis.from_url(replica.url) as client:
        await client.config_set("masterauth", primary.place.password)
        await client.replicaof("127.0.0.1", str(primary.place.port))
        await client.config_set("requirepass", primary.place.password)
    await until(lambda: is_linked(plain))
    yield Pair(primary, replica, link, plain)
    await plain.aclose()
    await link.stop()
    for one in (primary, replica):
        one.kill()


async def is_linked(replica: Redis) -> bool:
    try:
        return bool((await replica.info("replication")).get("master_link_status") == "up")
    except RedisError:
        return False


async def claim(queue: Queue, owner: str, lease: timedelta = LEASE) -> Claim:
    return await queue.claim(0, ClaimRequest("t", owner, 1, lease, FLOOR))


async def test_after_a_promotion_an_old_worker_settles_nothing_that_another_one_has_claimed(pair: Pair) -> None:
    store = await Store.open(pair.url)
    await sign_layout(store)
    queue = Queue(store)
    await queue.put_many("t", [NewTask("kept"), NewTask("lost")])
    kept = (await claim(queue, "old", NEARLY_OVER)).tasks[0]
    await store.command("SET", "mark", "")
    await until(lambda: pair.plain.exists("mark"))
    await pair.lose_writes()
    lost = (await claim(queue, "old")).tasks[0]
    pair.primary.kill()
    pair.replica.resume()
    pair.link.redirect(pair.replica.place.port)
    waiting = asyncio.create_task(queue.put("t", NewTask("put meanwhile"), shard=0))
    await until(pair.refusals)
    assert not waiting.done()
    await pair.promote()
    await waiting
    again = (await claim(queue, "new")).tasks[0]
    assert (again.id, again.body) == (lost.id, "lost")
    assert int(again.token.split()[0]) > 1_000_000
    assert await queue.settle(lost) == "stale"
    assert await queue.settle(again) == "done"
    assert float(await store.command("ZSCORE", KEYS["lease"].at(0), kept.id)) >= kept.claimed + GRACE_MS
    assert (await queue.extend(kept, HOUR)).lease_valid
    assert await store.command("HGETALL", KEYS["primary"].at(0)) == {
        "id": (await pair.plain.info("replication"))["master_replid"],
        "epoch": "1",
    }
    await store.close()


async def test_an_outcome_that_only_the_lost_primary_had_is_written_again_and_nothing_is_sent_twice(pair: Pair) -> None:
    """A courier writes the outcomes of a parcel while its last attempts still wait for the provider."""
    store = await Store.open(pair.url)
    await sign_layout(store)
    stack, first, last = Stack(store, pair.primary), Gate(), Gate()
    courier = FakeCourier(respond=lambda one: (first if one.address == "p1" else last)(one), remembers=NEVER)
    await stack.courier(courier)
    key = (await stack.deliver(*people(2))).key
    await until(lambda: len(courier.attempted) == 2)
    await store.command("SET", "mark", "")
    await until(lambda: pair.plain.exists("mark"))
    await pair.lose_writes()
    first.opened.set()
    await until(lambda: has_status(stack, key, Status.SENT))
    pair.primary.kill()
    pair.replica.resume()
    await pair.promote()
    pair.link.redirect(pair.replica.place.port)
    await until(lambda: has_status(stack, key, Status.SENDING))
    last.opened.set()
    assert statuses(await stack.finished(key)) == {1: "sent", 2: "sent"}
    assert len(courier.attempted) == 2
    await stack.close()


async def test_presses_that_only_the_lost_primary_had_counted_are_counted_once_and_the_silent_are_reminded(
    pair: Pair,
) -> None:
    """One press was counted before; another one, its count and a wave of reminders were not replicated."""
    store = await Store.open(pair.url)
    await sign_layout(store)
    stack = Stack(store, pair.primary)
    async with asking(stack, FakeCourier("telegram-bot", shows=frozenset({Feature.INLINE, Feature.ANSWER}))) as asked:
        accepted = await asked.ask(COMING, *(person(number, "telegram-bot") for number in range(1, 4)))
        await asked.press("p1", asked.button("p1"))
        await store.command("SET", "mark", "")
        await until(lambda: pair.plain.exists("mark"))
        await pair.lose_writes()
        await asked.press("p2", asked.button("p2"), "lost")
        assert await asked.totals(accepted) == {"answered": 2, "open": 1, "yes": 2}
        assert await OpenQuestions(store).remind(accepted.key, TENANT) == ("reminded", 1)
        pair.primary.kill()
        pair.replica.resume()
        await pair.promote()
        pair.link.redirect(pair.replica.place.port)
        assert await asked.totals(accepted) == {"answered": 1, "open": 2, "yes": 1}
        await asked.press("p2", asked.button("p2"), "lost")  # the provider repeats what was not confirmed
        assert await asked.totals(accepted) == {"answered": 2, "open": 1, "yes": 2}
        assert await OpenQuestions(store).remind(accepted.key, TENANT, 1) == ("reminded", 1)
        await until(lambda: asked.courier.addresses.count("p3") > 1)
        reminded = [len(one.reminders) for one in (await stack.history(accepted.key)).recipients]
        assert reminded == [0, 0, 1]
        await store.command("DEL", "mark")
    await stack.close()


async def has_status(stack: Stack, key: HistoryKey, status: Status) -> bool:
    return statuses(await stack.history(key))[1] is status


async def test_a_parcel_that_comes_back_with_open_entries_is_looked_at_as_after_a_crash(stack: Stack) -> None:
    """Its worker knew the end of every entry and had written it to a primary that is lost."""
    courier = FakeCourier(remembers=NEVER)
    await stack.stop(await stack.courier(courier))
    key = (await stack.deliver(*people(1))).key
    task = (await stack.queue.claim(0, ClaimRequest("echo", "old", 1, LEASE, FLOOR))).tasks[0]
    await stack.queue.extend(task, LEASE, [Parcel.of(task).entries[0].item(Status.SENDING, attempts=1)])
    assert await stack.queue.settle(task) == "ready"
    await stack.courier(courier)
    assert statuses(await stack.finished(key)) == {1: "unknown"}
    assert courier.attempted == []


async def test_a_state_that_lasts_is_refused_with_its_code_and_reads_go_on(server: Server) -> None:
    store = await Store.open(server.url, patience=0.3)
    await store.redis.config_set("min-replicas-to-write", 1)
    try:
        putting = asyncio.create_task(Queue(store).put("t", NewTask("")))
        assert await asyncio.wait_for(store.command("GET", "nothing"), 20) is None
        with pytest.raises(StoreRefuses, match="NOREPLICAS") as refusal:
            await putting
        assert refusal.value.code == "STORE_WITHOUT_REPLICAS"
    finally:
        await store.redis.config_set("min-replicas-to-write", 0)
    await Queue(store).put("t", NewTask(""))
    await store.close()


@pytest.mark.parametrize("word", ["READONLY", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED"])
def test_a_state_of_a_fail_over_is_repeated_and_has_a_code_and_a_sentence(word: str) -> None:
    fault = RedisError(f"{word} 1234 127.0.0.1:7000")
    found = refused_write(fault)
    assert may_pass(fault)
    assert found
    assert found.code.startswith("STORE_")
    assert word in str(found)


async def test_the_heartbeat_leaves_a_primary_that_became_a_replica_behind_the_same_address(pair: Pair) -> None:
    """As behind a virtual address: the old server lives on, and keeps the connections it has."""
    store = await Store.open(pair.url)
    await sign_layout(store)
    queue = Queue(store)
    await queue.put("t", NewTask(""))
    (task,) = (await claim(queue, "worker")).tasks
    heartbeat = Heartbeat(store, timedelta(seconds=0.3), HOUR)
    heartbeat.add(task, time.monotonic())
    heartbeat.start()
    first = heartbeat.lease_end(task)
    await until(lambda: heartbeat.lease_end(task) > first)
    await pair.promote()
    async with Redis.from_url(pair.primary.url) as old:
        await old.replicaof("127.0.0.1", str(pair.replica.place.port))
    pair.link.lead_new_connections_to(pair.replica.place.port)
    moved = time.monotonic()
    await until(lambda: heartbeat.lease_end(task) > moved + 0.3)
    heartbeat.stop()
    await store.close()


async def test_a_new_primary_without_replicas_is_written_nothing_to_although_the_one_before_had_some(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.redis.pipelines.replicated_pipeline._WAIT", encoded("WAIT", 1, 300))
    store = await Store.open(pair.url, durability=Durability.REPLICA)
    await sign_layout(store)
    await Queue(store).put("t", NewTask("confirmed"))
    pair.primary.kill()
    await pair.promote()
    pair.link.redirect(pair.replica.place.port)
    with pytest.raises((StoreRefuses, StoreUnavailable)):  # unclear if it was on its way to the old one
        await Queue(store).put("t", NewTask("refused"))
    assert (await Queue(store).inspector.stats()).tubes["t"].put == 1
    await store.close()
