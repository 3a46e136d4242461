"""A migration moves every key, or leaves both servers so that no process starts on them (S-15). A backup of a cluster
moves them back.
"""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from core.backup import ArchiveReader, restore, take_snapshot
from core.backup.key_space import KeySpace, open_cluster, open_server, whole_view
from core.backup.migration import Migration
from core.errors import DataMoved, SetupError, StoreUnavailable
from core.queue import NewTask, Queue
from core.queue.inspector import Inspector
from core.redis.cluster import ClusterNodes, ClusterView, Place, view_of
from core.redis.connection import ServerAddress
from core.redis.keys import is_ours
from core.redis.server_checks import MigrationMark, check_layout, sign_layout
from core.redis.store import Store
from core.redis.topology import SentinelSet
from tests.core.backup.backups import WatchedArchive
from tests.support.audited import violations_in
from tests.support.cluster import Cluster, ClusterNode
from tests.support.forked import ForkedProcess, Program, run_ada
from tests.support.replica_set import ReplicaSet
from tests.support.servers import Server
from tests.support.waiting import await_sync, until

SHARDS = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    opened = Cluster(tmp_path_factory.mktemp("cluster"), replicas=0)
    opened.start()
    yield opened
    opened.close()


@pytest.fixture
async def source(server: Server, cluster: Cluster) -> Server:
    """A server with tasks and a key of each type; the cluster is empty."""
    for node in cluster.nodes:
        node.command("FLUSHALL")
    store = await Store.open(server.url, SHARDS)
    await sign_layout(store)
    queue = Queue(store)
    for n in range(40):
        await queue.put("t", NewTask(body=f"{n} ж", lane=f"lane {n % 7}"))
    await queue.put("t", NewTask(body="later", due=datetime.now(UTC) + timedelta(days=1)))
    await store.command("SET", "damaged:{0}:bytes", b"\xff\x00\x80", "PX", 3_600_000)
    await store.close()
    return server


async def migrate(server: Server, cluster: Cluster) -> Migration:
    nodes = ClusterNodes.parse(cluster.url)
    async with (
        open_server(ServerAddress.parse(server.url), "ADA_REDIS_URL") as old,
        open_cluster(nodes, "--to") as new,
    ):
        migration = Migration(old, new)
        assert await migration.run() == SHARDS
    return migration


def contents(*servers: Any) -> dict[bytes, tuple[Any, int]]:
    """Return the content and the time of expiry of every key but the mark."""
    found = {}
    for client in servers:
        for key in client.keys("*"):
            content = _READERS[client.type(key)](client, key)
            found[key] = (content, client.execute_command("PEXPIRETIME", key))
    found.pop(b"migration", None)
    return found


_READERS: dict[bytes, Callable[[Any, bytes], object]] = {
    b"string": lambda client, key: client.get(key),
    b"hash": lambda client, key: client.hgetall(key),
    b"list": lambda client, key: client.lrange(key, 0, -1),
    b"set": lambda client, key: client.smembers(key),
    b"zset": lambda client, key: client.zrange(key, 0, -1, withscores=True),
    b"stream": lambda client, key: (client.xrange(key), client.xinfo_stream(key)["last-generated-id"]),
}


async def test_a_cluster_gets_every_key_with_its_expiry_and_the_source_starts_no_process(
    source: Server, cluster: Cluster
) -> None:
    with Redis.from_url(source.url) as client:
        before = contents(client)
    migration = await migrate(source, cluster)
    assert contents(*(Redis.from_url(node.url) for node in cluster.nodes)) == before
    assert sum(migration.keys.values()) == len(before)
    old, new = await Store.open(source.url, SHARDS), await Store.open(cluster.url, SHARDS)
    with pytest.raises(DataMoved, match=r"DATA_MOVED: .* have moved to redis\+cluster://127.0.0.1"):
        await sign_layout(old)
    await sign_layout(new)
    assert await Inspector(new).ready_tasks() == {"t": 40}
    assert await violations_in(new) == []
    await old.close()
    await new.close()
    with pytest.raises(DataMoved, match="have moved"):
        await migrate(source, cluster)


async def test_a_server_in_use_and_a_target_with_data_are_refused_and_stay_as_they_are(
    source: Server, cluster: Cluster
) -> None:
    store = await Store.open(source.url, SHARDS)
    await store.command("PING")
    with pytest.raises(SetupError, match="Ada uses this database over 1 connection"):
        await migrate(source, cluster)
    await check_layout(store)
    await store.close()
    cluster.owner_of("layout:{3}").command("SET", "layout:{3}", 5)
    with pytest.raises(SetupError, match=r"the target redis\+cluster://.* has data of Ada .* 'layout:\{3\}'"):
        await migrate(source, cluster)
    with Redis.from_url(source.url) as client:
        assert not client.exists("migration")


def keys_on(cluster: Cluster) -> int:
    return sum(sum(map(is_ours, node.command("KEYS", "*"))) for node in cluster.nodes)


async def test_a_migration_that_is_killed_again_and_again_is_completed_by_the_next_run(
    source: Server, cluster: Cluster, tmp_path: Path
) -> None:
    count = 12_000
    with Redis.from_url(source.url) as client, client.pipeline(transaction=False) as pipeline:
        for n in range(count):
            pipeline.set(f"damaged:{{{n % SHARDS}}}:{n}", n, ex=3600)
        pipeline.execute()
    environment = {**os.environ, "ADA_REDIS_URL": source.url, "ADA_DATA": str(tmp_path)}
    words = ("migrate", "--to", cluster.url, "--json")
    for part in (1, 2):
        process = ForkedProcess(Program("cli", words, environment, tmp_path, tmp_path / "log"))
        await asyncio.to_thread(await_sync, lambda part=part: keys_on(cluster) > part * count / 6, "a part")
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert keys_on(cluster) < count
        for url in (source.url, cluster.url):
            store = await Store.open(url, SHARDS)
            with pytest.raises(DataMoved, match="has not moved all data"):
                await check_layout(store)
            await store.close()
    done = await asyncio.to_thread(run_ada, words, environment, tmp_path)
    moved, audited = (json.loads(done.stdout.splitlines()[n]) for n in (0, -1))
    assert moved["keys"] == keys_on(cluster)
    assert 0 < moved["written"] < count * 2 / 3, "what was copied is not copied again"
    assert audited["violations"] == 0


async def test_a_backup_of_a_cluster_is_of_one_moment_on_all_primaries_and_fits_one_server(
    source: Server, cluster: Cluster
) -> None:
    await migrate(source, cluster)
    payer, payee = (cluster.owner(shard) for shard in (0, 3))
    assert payer is not payee, "the shards stand on two primaries"

    ended = threading.Event()

    def pay() -> None:
        """The payee gets what the payer has paid, so each moment has 0, or -1 between the two."""
        while not ended.is_set():
            payer.command("DECR", "damaged:{0}:balance")
            payee.command("INCR", "damaged:{3}:balance")

    archive = WatchedArchive(lambda key: None, SHARDS)
    payments = asyncio.create_task(asyncio.to_thread(pay))
    await until(lambda: payee.command("EXISTS", "damaged:{3}:balance") == 1)
    await take_snapshot(ClusterNodes.parse(cluster.url), archive)
    ended.set()
    await payments
    with Redis.from_url(source.url) as client:
        client.flushall()
        archive.file.seek(0)
        await restore(ArchiveReader(archive.file), ServerAddress.parse(source.url), replaces=False)
        restored, present = contents(client), contents(*(Redis.from_url(node.url) for node in cluster.nodes))
    (paid, _), (got, _) = (restored.pop(b"damaged:{%d}:balance" % shard) for shard in (0, 3))
    assert int(paid) + int(got) in (0, -1)
    assert restored == {key: found for key, found in present.items() if b"balance" not in key}


async def test_a_change_on_one_primary_after_its_key_was_read_is_in_the_backup(cluster: Cluster) -> None:
    names = {f"damaged:{{{shard}}}:late": cluster.owner(shard) for shard in range(SHARDS)}
    for name, node in names.items():
        node.command("SET", name, "old")
    for changed, node in names.items():
        later = iter([changed])

        def change(key: bytes, changed: str = changed, node: ClusterNode = node, later: Iterator[str] = later) -> None:
            if key == changed.encode() and next(later, None):
                node.command("SET", changed, "new")

        archive = WatchedArchive(change, SHARDS)
        await take_snapshot(ClusterNodes.parse(cluster.url), archive)
        assert archive.values()[changed.encode()] == b"new"


@pytest.mark.parametrize("has_keys", [True, False])
async def test_a_backup_during_which_slots_move_is_refused(source: Server, cluster: Cluster, has_keys: bool) -> None:
    """Also if no read is refused, because the keys of the slot were read before, or it has none."""
    await migrate(source, cluster)
    owner = cluster.owner(0)
    others = iter([node for node in cluster.nodes if node is not owner][:1])
    for key in [] if has_keys else owner.command("KEYS", "*{0}*"):
        owner.command("DEL", key)

    def move(key: bytes) -> None:
        for other in others:
            cluster.move(0, other)

    with pytest.raises(SetupError, match="slots of the cluster moved"):
        await take_snapshot(ClusterNodes.parse(cluster.url), WatchedArchive(move, SHARDS))


async def test_a_backup_is_refused_if_a_single_primary_sees_another_owner_at_its_end(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A primary that was replaced does not know it at once, and the others perhaps not either."""
    nodes = ClusterNodes.parse(cluster.url)
    owners = sorted({one.owner for one in (await whole_view(nodes)).slots})
    assert len(owners) > 1
    for odd in owners:

        async def seen(nodes: ClusterNodes, place: Place, odd: Place = odd) -> ClusterView:
            view = await view_of(nodes, place)
            return replace(view, slots=view.slots[1:]) if place == odd else view

        monkeypatch.setattr("core.backup.snapshot.view_of", seen)
        with pytest.raises(SetupError, match="a primary was replaced, during the backup"):
            await take_snapshot(nodes, WatchedArchive(lambda key: None, SHARDS))


async def test_a_migration_to_primaries_that_are_replaced_meanwhile_leaves_the_source_the_one_with_the_data(
    source: Server, cluster: Cluster, replica_set: ReplicaSet
) -> None:
    """Behind Sentinels: the old primary lives, and its clients reach it. In a cluster: the slot has no key."""
    old = replica_set.primary
    empty = next(shard for shard in range(SHARDS, 99) if not cluster.owner(shard).command("KEYS", f"*{{{shard}}}*"))

    def promote() -> None:
        old.hide()
        replica_set.await_promotion(old)

    def move() -> None:
        cluster.move(empty, next(node for node in cluster.nodes if node is not cluster.owner(empty)))

    targets: list[tuple[AbstractAsyncContextManager[KeySpace], Callable[[], None]]] = [
        (open_server(SentinelSet.parse(replica_set.url), "--to"), promote),
        (open_cluster(ClusterNodes.parse(cluster.url), "--to"), move),
    ]
    for target, blow in targets:
        async with open_server(ServerAddress.parse(source.url), "ADA_REDIS_URL") as server, target as new:
            blow()
            with pytest.raises(SetupError, match=r"a primary of .* was replaced during the migration; run it again"):
                await Migration(server, new).run()
        with Redis.from_url(source.url) as client:
            mark = MigrationMark.read(bytes(client.get("migration")))
            assert not mark.is_done
            client.delete("migration")  # the other target is another migration


async def test_a_target_that_does_not_answer_is_named_by_its_option() -> None:
    with pytest.raises(StoreUnavailable, match=r"No Redis at --to \(redis://127.0.0.1:1/0\): .*\. Start it\.$"):
        async with open_server(ServerAddress.parse("redis://127.0.0.1:1"), "--to"):
            pass
