"""A worker in the minority of a partition: it reaches one primary of a cluster and its replica, and no other node."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from core.errors import StoreError
from core.model.durability import Durability
from core.queue import NewTask, Queue
from core.queue.task import ClaimRequest, Settled, Task
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from tests.support.audited import violations_in
from tests.support.cluster import Cluster, ClusterNode
from tests.support.stack import FLOOR, LEASE
from tests.support.waiting import until
from tests.system.crash.cuttable_link import CuttableLink

SHARDS = 4
INSIDE = "127.0.0.2"
"""The address at which the worker inside reaches each node: over a link of its own."""
SHORT = timedelta(milliseconds=100)


class Partition:
    """`old`: the primary of `shard`, which is cut off `with_it`, a replica; `other`: the replica that is promoted."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.old = cluster.nodes[0]
        self.with_it, self.other = cluster.replicas_of(self.old)
        self.shard = next(n for n in range(SHARDS) if cluster.owner(n) is self.old)
        self.links = [CuttableLink(node.port) for node in cluster.nodes]

    async def open(self) -> None:
        """The nodes name only ports, so each worker stays at the address that its URL names."""
        for node, link in zip(self.cluster.nodes, self.links, strict=True):
            await link.start(INSIDE, node.port)
            node.command("CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint")

    async def begin(self) -> None:
        group = [self.old, self.with_it]
        for node, link in zip(self.cluster.nodes, self.links, strict=True):
            if node not in group:
                link.block_requests()
                link.block_replies()
        await asyncio.to_thread(self.cluster.cut_off, group)

    async def end(self) -> None:
        for link in self.links:
            link.cut()
        await asyncio.to_thread(self.cluster.reconnect)

    def only_inside(self) -> set[str]:
        """The tasks that old primary and replica have, and the new one has not."""
        return (tasks_of(self.old) & tasks_of(self.with_it)) - tasks_of(self.other)


def tasks_of(node: ClusterNode) -> set[str]:
    return set(node.ask("KEYS", "queue:*:task:*") or [])


@pytest.fixture
async def partition(tmp_path: Path) -> AsyncIterator[Partition]:
    cluster = Cluster(tmp_path, replicas=4)
    await asyncio.to_thread(cluster.start)
    opened = Partition(cluster)
    await opened.open()
    yield opened
    for link in opened.links:
        await link.stop()
    cluster.close()


async def claimed(queue: Queue, shard: int, owner: str, lease: timedelta = LEASE, most: int = 1) -> Sequence[Task]:
    return (await queue.claim(shard, ClaimRequest("t", owner, most, lease, FLOOR))).tasks


async def put_always(queue: Queue, shard: int, acknowledged: list[str]) -> None:
    while True:
        with suppress(StoreError):
            acknowledged.append(await queue.put("put", NewTask("x"), shard=shard))


async def may_send(extending: "asyncio.Task[bool]") -> bool:
    """Return whether a courier would have sent."""
    with suppress(StoreError):
        return await extending
    return False


async def test_a_worker_in_the_minority_of_a_cluster_loses_nothing_acknowledged_and_settles_nothing_of_others(
    partition: Partition,
) -> None:
    """Its primary takes writes until cluster-node-timeout, and its replica confirms them."""
    url = partition.cluster.url
    outside = await Store.open(url, SHARDS, durability=Durability.REPLICA)
    await sign_layout(outside)
    inside = await Store.open(url.replace("127.0.0.1", INSIDE), SHARDS, durability=Durability.REPLICA)
    worker, other_worker, shard = Queue(inside), Queue(outside), partition.shard
    acknowledged = await worker.put_many("t", [NewTask("before"), NewTask("meanwhile")], shard=shard)
    [before] = await claimed(worker, shard, "inside", SHORT)
    written = partition.old.offset
    await until(lambda: partition.other.offset >= written)
    await partition.begin()
    # On a busy machine the short lease has ended by now, and the first task is claimed again.
    [meanwhile] = [one for one in await claimed(worker, shard, "inside", most=2) if one.id != before.id]
    putting = asyncio.create_task(put_always(worker, shard, acknowledged))
    await until(partition.only_inside)

    async def extends() -> bool:
        return (await worker.extend(meanwhile, LEASE, replicated=True)).lease_valid

    extending = asyncio.create_task(extends())
    await asyncio.to_thread(partition.cluster.await_promotion, [partition.other])
    again = [*await until(lambda: claimed(other_worker, shard, "outside"))]
    again += await until(lambda: claimed(other_worker, shard, "outside"))
    assert partition.only_inside()
    await partition.end()
    known = len(acknowledged)
    await until(lambda: len(acknowledged) > known + 3)
    await cancel_and_wait(putting)
    lost = [one for one in acknowledged if not await outside.command("EXISTS", task_key(one))]
    assert lost == []
    assert not await may_send(extending)
    assert {one.id for one in again} == {before.id, meanwhile.id}
    assert [await worker.settle(one) for one in (before, meanwhile)] == [Settled.STALE] * 2
    assert [await other_worker.settle(one) for one in again] == [Settled.DONE] * 2
    assert await violations_in(outside) == []
    await inside.close()
    await outside.close()


def task_key(task_id: str) -> str:
    shard, _, name = task_id.partition(".")
    return KEYS["task"].at(int(shard), name)
