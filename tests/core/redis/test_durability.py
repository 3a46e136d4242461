"""What each durability keeps when the primary is lost: the lines of the table in docs/high-availability.md (S-06)."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import cast

import pytest

from core.admission.api_keys import ApiKeys
from core.admission.idempotency import Idempotency
from core.directory import Directory
from core.errors import StoreError, StoreRefuses, StoreUnavailable
from core.model.durability import Durability
from core.model.own_fields import OwnField
from core.model.people import User
from core.model.states import Status
from core.orders.templates import MessageTemplate, MessageTemplates
from core.queue import NewTask, Queue, Tube
from core.queue.tubes import Tubes
from core.redis import library
from core.redis.keys import KEYS
from core.redis.store import Store
from core.sessions import Sessions
from couriers.sending.interface import NEVER
from tests.support.delivery_progress import statuses
from tests.support.replica_set import ReplicaSet
from tests.support.servers import Server
from tests.support.stack import FakeCourier, Stack, people
from tests.support.waiting import stays, until
from tests.system.crash.cuttable_link import CuttableLink

REPORT = ("1:1", "sms", 0, "[]")
"""Of no delivery: nothing is written."""


@pytest.fixture
async def local(replica_set: ReplicaSet) -> AsyncIterator[Store]:
    opened = await Store.open(replica_set.url)
    yield opened
    await opened.close()


@pytest.fixture
async def replicated(replica_set: ReplicaSet) -> AsyncIterator[Store]:
    opened = await Store.open(replica_set.url, durability=Durability.REPLICA)
    yield opened
    await opened.close()


async def tasks_kept(store: Store, ids: list[str]) -> int:
    return sum([await store.command("EXISTS", KEYS["task"].at(0, one.partition(".")[2])) for one in ids])


async def test_a_promotion_without_the_last_writes_loses_what_local_acknowledged_and_nothing_that_replica_did(
    local: Store, replicated: Store, replica_set: ReplicaSet
) -> None:
    """With `replica` the same put is refused or unconfirmed, so its caller knows."""
    kept = [str(await Queue(replicated).put("t", NewTask(str(number)))) for number in range(10)]
    old = replica_set.primary
    replicas = replica_set.replicas
    replica_set.hold_replication()
    lost = [str(await Queue(local).put("t", NewTask(str(number)))) for number in range(10)]
    with pytest.raises(StoreUnavailable, match="No replica of Redis has confirmed"):
        await Queue(replicated).put("t", NewTask("unconfirmed"))
    with pytest.raises(StoreRefuses, match="ADA_DURABILITY=replica accepts nothing"):
        await Queue(replicated).put("t", NewTask("refused"))
    assert await tasks_kept(local, kept) == await tasks_kept(local, lost) == 10
    old.kill()
    for replica in replicas:
        replica.resume()
    await asyncio.to_thread(replica_set.await_promotion, old)
    assert await tasks_kept(local, kept) == 10
    assert await tasks_kept(local, lost) == 0
    assert await Queue(replicated).put("t", NewTask("goes on"))


async def test_without_a_replica_no_attempt_is_made_that_could_not_be_recognised_as_a_repeat(
    local: Store, replicated: Store, replica_set: ReplicaSet
) -> None:
    stack = Stack(replicated, cast(Server, replica_set.primary))
    courier = FakeCourier(remembers=NEVER)
    await stack.courier(courier)
    replicas = replica_set.replicas
    replica_set.hold_replication()
    accepted = await Stack(local, cast(Server, replica_set.primary)).deliver(*people(3))
    with pytest.raises(StoreError):
        await stack.deliver(*people(1))  # takes as long as the courier waits for a replica
    assert courier.attempted == []
    for replica in replicas:
        replica.resume()
    assert set(statuses(await stack.finished(accepted.key)).values()) == {Status.SENT}
    assert courier.addresses.count("p3") == 1
    await stack.close()


async def test_a_repeat_of_an_unconfirmed_call_is_not_acknowledged_either(
    local: Store, replicated: Store, replica_set: ReplicaSet
) -> None:
    """It writes nothing, and WAIT would count the replicas that have what its connection wrote before."""
    task, names = NewTask("x"), {"source": "bot", "name": "1"}
    await Queue(replicated).put("t", task)
    for replica in replica_set.replicas:
        replica.freeze()
    assert await Queue(local).put_once("t", task, **names)
    with pytest.raises(StoreUnavailable, match="No replica of Redis has confirmed"):
        await Queue(replicated).put_once("t", task, **names)


async def test_a_primary_that_is_cut_off_loses_what_it_acknowledged_since_and_nothing_that_replica_did(
    replicated: Store, replica_set: ReplicaSet
) -> None:
    """Its workers are on its side of the partition. When it returns it follows the new primary."""
    kept = str(await Queue(replicated).put("t", NewTask("kept")))
    old = replica_set.primary
    inside = [await Store.open(old.url, durability=durability) for durability in Durability]
    replica_set.cut_off(old)
    lost = str(await Queue(inside[0]).put("t", NewTask("lost")))
    with pytest.raises((StoreUnavailable, StoreRefuses)):
        await Queue(inside[1]).put("t", NewTask("unconfirmed"))
    await asyncio.to_thread(replica_set.await_promotion, old)
    await asyncio.to_thread(replica_set.repair)
    assert (await tasks_kept(replicated, [kept]), await tasks_kept(replicated, [lost])) == (1, 0)
    for store in inside:
        await store.close()


async def test_a_late_confirmation_at_a_single_address_counts_when_the_primary_confirms_once_more(
    replica_set: ReplicaSet,
) -> None:
    """It was frozen, and another one may have been promoted. Nobody can be asked who promotes what there."""
    primary, (replica, _) = replica_set.primary, replica_set.replicas
    replicated = await Store.open(primary.url, durability=Durability.REPLICA)
    await Queue(replicated).put("t", NewTask("before"))
    primary.freeze()
    frozen = time.monotonic()
    put = asyncio.create_task(Queue(replicated).put("t", NewTask("late")))
    await until(lambda: time.monotonic() - frozen > 1.2)
    written = replica.offset
    primary.resume()
    await until(lambda: replica.offset > written + 100)
    await stays(lambda: not put.done(), during=0.1)
    assert await put
    await replicated.close()


async def test_a_primary_that_wakes_while_it_is_replaced_acknowledges_nothing_that_is_lost(
    local: Store, replicated: Store, replica_set: ReplicaSet
) -> None:
    """No Sentinel names the new one yet, and the other replica follows the old one: WAIT 1 said yes to 82 of 83 writes
    within a second, all lost.
    """
    await Queue(replicated).put("t", NewTask("before"))
    old = replica_set.primary
    old.freeze()
    await asyncio.to_thread(replica_set.await_command, old)
    old.resume()
    kept: list[str] = []
    while replica_set.primary is old or len(kept) < 3:
        kept.append(str(await Queue(replicated).put("t", NewTask("x"))))
    await until(lambda: local.address.port == replica_set.primary.announced)
    assert await tasks_kept(local, kept) == len(kept)


async def test_a_worker_in_the_minority_is_acknowledged_nothing_although_a_replica_is_with_it(
    local: Store, replica_set: ReplicaSet
) -> None:
    """All Sentinels are on the other side, with one replica, which they promote. No server was ever silent."""
    links = [CuttableLink(sentinel.port) for sentinel in replica_set.sentinels]
    url = replica_set.url
    for link, sentinel in zip(links, replica_set.sentinels, strict=True):
        await link.start()
        url = url.replace(f":{sentinel.port}", f":{link.port}")
    inside = await Store.open(url, durability=Durability.REPLICA)
    kept = str(await Queue(inside).put("t", NewTask("kept")))
    old, (with_it, _) = replica_set.primary, replica_set.replicas
    for link in links:
        link.block_requests()
        link.block_replies()
    for node in (old, with_it):
        node.hide()
    await asyncio.to_thread(replica_set.await_promotion, old)
    with pytest.raises(StoreUnavailable, match="may be about to be replaced"):
        await Queue(inside).put("t", NewTask("unconfirmed"))
    with pytest.raises(StoreRefuses, match="may be about to be replaced"):
        await Queue(inside).put("t", NewTask("refused"))
    assert with_it.follows
    await until(lambda: local.address.port == replica_set.primary.announced)
    assert await tasks_kept(local, [kept]) == 1
    await inside.close()
    for link in links:
        await link.stop()


async def test_one_sentinel_under_two_names_is_no_majority(replica_set: ReplicaSet) -> None:
    first, *others = [f"127.0.0.1:{sentinel.port}" for sentinel in replica_set.sentinels]
    twice = f"{first},{first.replace('127.0.0.1', 'localhost')}"
    store = await Store.open(replica_set.url.replace(",".join([first, *others]), twice), durability=Durability.REPLICA)
    with pytest.raises(StoreRefuses, match="may be about to be replaced"):
        await Queue(store).put("t", NewTask("refused"))
    await store.close()


async def test_one_of_two_replicas_may_be_lost(replicated: Store, replica_set: ReplicaSet) -> None:
    await Queue(replicated).put("t", NewTask("before"))
    replica_set.replicas[0].kill()
    assert await Queue(replicated).put("t", NewTask("after"))


def test_every_unacknowledged_function_exists() -> None:
    assert set(library.names()) >= library.UNACKNOWLEDGED


async def test_plain_commands_that_are_acknowledged_are_on_a_replica(
    local: Store, replicated: Store, replica_set: ReplicaSet
) -> None:
    """Keys, sessions, templates, fields, tubes and stored responses."""
    keys, templates = ApiKeys(replicated), MessageTemplates(replicated)
    key, _ = await ApiKeys(local).create("revoked", ["admin"])
    person = await Directory(local).users.create("default", User(1))
    fields = Directory(replicated).own_fields
    sessions = Sessions(replicated, Directory(replicated), keys)
    begun = await sessions.begin_as_person("default", person.id)
    replica_set.hold_replication()
    calls = {
        "a new key": keys.create("new", ["admin"]),
        "a revoked key": keys.revoke(key.id),
        "an ended session": sessions.end_all(begun.identity),
        "a template": templates.save("default", None, MessageTemplate(title="Exam", message={"text": "Room 4"})),
        "a field": fields.define("default", OwnField("room")),
        "a tube": Tubes(replicated).create(Tube("t", attempts=3)),
        "a response": Idempotency(replicated).finish("default", "key", "request", 201, b"{}"),
    }
    results = await asyncio.gather(*calls.values(), return_exceptions=True)
    acknowledged = [name for name, result in zip(calls, results, strict=True) if not isinstance(result, StoreError)]
    assert acknowledged == []


async def test_calls_of_one_moment_are_confirmed_together(replicated: Store) -> None:
    """Each WAIT of its own would make 200 calls take 200 round trips, one after another."""

    async def waits() -> int:
        stats = await replicated.redis.info("commandstats")
        return int(stats["cmdstat_wait"]["calls"])

    await replicated.run("record_report", 0, *REPORT)
    before = await waits()
    await asyncio.gather(*(replicated.run("record_report", 0, *REPORT) for _ in range(200)))
    assert 1 <= await waits() - before <= 5
