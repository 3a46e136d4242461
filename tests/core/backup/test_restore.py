"""A restore is done as a whole or changes nothing."""

import gzip
import io
import random
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module

import pytest
from redis.asyncio import Redis

from core.backup import ArchiveFault, ArchiveHeader, ArchiveReader, ArchiveWriter, check_archive, restore, take_snapshot
from core.backup.archive import StoredValue
from core.errors import SetupError, StoreUnavailable
from core.redis.connection import ServerAddress, StoreConnection
from core.redis.keys import LAYOUT
from core.redis.store import Store
from core.redis.topology import SentinelSet
from core.uploads import Uploads
from tests.core.backup.backups import backup, put_back
from tests.support.replica_set import ReplicaSet
from tests.support.servers import Server

OURS, NEWER = "queue:{0}:turns", "queue:{0}:weights"


@pytest.fixture
async def file(server: Server) -> io.BytesIO:
    """A backup of two keys. Afterwards the server has another one."""
    async with Redis.from_url(server.url) as client:
        await client.hset(OURS, "t", 1)
        await client.hset("queue:{0}:states", mapping={str(n): n for n in range(5000)})
        made = await backup(server)
        await client.flushdb()
        await client.hset(NEWER, "t", 2)
    return made


async def keys(server: Server) -> dict[int, list[str]]:
    """The keys of each database that has any."""
    async with Redis.from_url(server.url) as client:
        databases = [int(name.removeprefix("db")) for name in await client.info("keyspace")]
    found = {}
    for database in databases:
        async with Redis.from_url(server.url, db=database, decode_responses=True) as client:
            found[database] = sorted(str(key) for key in await client.keys("*"))
    return found


async def test_data_that_are_there_stay_unless_they_are_to_be_replaced(server: Server, file: io.BytesIO) -> None:
    with pytest.raises(SetupError, match=r"the database has 1 key; --replace"):
        await put_back(file, server)
    assert await keys(server) == {0: [NEWER]}
    await put_back(file, server, replaces=True)
    assert await keys(server) == {0: ["queue:{0}:states", OURS]}


async def test_keys_of_other_programs_are_never_removed(server: Server, file: io.BytesIO) -> None:
    async with Redis.from_url(server.url) as client:
        await client.set("shop:cart", 1)
    with pytest.raises(SetupError, match="keys that are not Ada's, such as 'shop:cart'"):
        await put_back(file, server, replaces=True)
    assert await keys(server) == {0: [NEWER, "shop:cart"]}


async def test_keys_of_other_programs_are_looked_for_among_all_keys(
    server: Server, file: io.BytesIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("core.backup.restore"), "_PAGE", 1)
    async with Redis.from_url(server.url) as client:
        for number in range(100):
            await client.set(f"queue:{{{number}}}:turns", 1)
        await client.set("shop:cart", 1)
    with pytest.raises(SetupError, match="keys that are not Ada's, such as 'shop:cart'"):
        await put_back(file, server, replaces=True)
    assert len((await keys(server))[0]) == 102


async def test_databases_of_other_programs_are_not_touched(server: Server, file: io.BytesIO) -> None:
    for database in (1, 2):
        async with Redis.from_url(server.url, db=database) as client:
            await client.set("shop:cart", database)
    await put_back(file, server, replaces=True)
    assert await keys(server) == {0: ["queue:{0}:states", OURS], 1: ["shop:cart"], 2: ["shop:cart"]}


async def test_data_in_another_database_than_the_first_are_backed_up_and_restored(server: Server) -> None:
    address = ServerAddress.parse(f"{server.url}?db=3")
    async with Redis.from_url(server.url, db=3) as client:
        await client.hset(OURS, "t", 1)
        file = io.BytesIO()
        await take_snapshot(address, ArchiveWriter(file, ArchiveHeader(1, LAYOUT, 1, 0)))
        await client.hset(OURS, "t", 2)
        file.seek(0)
        await restore(ArchiveReader(file), address, replaces=True)
        assert await client.hget(OURS, "t") == b"1"
    assert await keys(server) == {3: [OURS]}


async def test_a_server_that_has_no_other_empty_database_is_refused(server: Server, file: io.BytesIO) -> None:
    for database in range(1, 16):
        async with Redis.from_url(server.url, db=database) as client:
            await client.set("shop:cart", 1)
    with pytest.raises(SetupError, match="no empty database"):
        await put_back(file, server, replaces=True)
    assert (await keys(server))[0] == [NEWER]


async def test_a_restore_refuses_a_database_that_ada_uses(server: Server, file: io.BytesIO) -> None:
    ada = await StoreConnection.open(ServerAddress.parse(server.url))
    with pytest.raises(SetupError, match="Ada uses this database over 1 connection; stop"):
        await put_back(file, server, replaces=True)
    ada.close()
    assert await keys(server) == {0: [NEWER]}


async def test_a_restore_that_fails_changes_nothing(server: Server, file: io.BytesIO) -> None:
    class Broken(Exception):
        pass

    def entries() -> Iterator[StoredValue]:
        file.seek(0)
        yield from ArchiveReader(file)
        raise Broken

    with pytest.raises(Broken):
        await restore(entries(), ServerAddress.parse(server.url), replaces=True)
    assert await keys(server) == {0: [NEWER]}


async def test_what_a_killed_restore_has_left_is_removed_by_the_next(server: Server, file: io.BytesIO) -> None:
    async with Redis.from_url(server.url, db=1) as client:
        await client.mset({"ada:restore": "", OURS: "half"})
    await put_back(file, server, replaces=True)
    assert await keys(server) == {0: ["queue:{0}:states", OURS]}


async def test_a_server_that_is_full_keeps_what_it_has(server: Server, file: io.BytesIO) -> None:
    async with Redis.from_url(server.url) as client:
        await client.config_set("maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="memory of Redis is full"):
            await put_back(file, server, replaces=True)
        await client.config_set("maxmemory", "0")
    assert await keys(server) == {0: [NEWER]}


# the file


async def test_a_file_that_is_cut_off_anywhere_is_refused(file: io.BytesIO) -> None:
    content = file.getvalue()
    for size in [*range(40), *range(40, len(content), 97), len(content) - 1]:
        with pytest.raises(ArchiveFault, match=r"not a backup of Ada|damaged or cut off"):
            check_archive(io.BytesIO(content[:size]), 1)


async def test_a_file_with_any_damaged_byte_is_refused(file: io.BytesIO) -> None:
    """But a bit that fills the last byte of the compressed data, which changes nothing."""
    content, chance = file.getvalue(), random.Random(1)
    plain = gzip.decompress(content)
    for place in [*range(10, 40), *chance.sample(range(40, len(content)), 300), *range(len(content) - 8, len(content))]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << chance.randrange(8)
        with suppress(OSError, EOFError, zlib.error):
            if gzip.decompress(damaged) == plain:
                continue
        with pytest.raises(ArchiveFault, match=r"not a backup of Ada|damaged or cut off|layout|format|shards"):
            check_archive(io.BytesIO(bytes(damaged)), 1)


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"id,name\n", gzip.compress(b"nonsense", mtime=0), bytes(10_000)]
)
def test_a_file_that_is_no_backup_is_named_so(content: bytes) -> None:
    with pytest.raises(ArchiveFault, match="the file is not a backup of Ada"):
        check_archive(io.BytesIO(content), 1)


async def test_a_backup_of_another_layout_or_number_of_shards_is_refused(server: Server) -> None:
    with pytest.raises(ArchiveFault, match=f"has layout 2, this version of Ada works with {LAYOUT}"):
        check_archive(await backup(server, layout=2), 1)
    with pytest.raises(ArchiveFault, match="has 4 shards; set ADA_SHARDS=4"):
        check_archive(await backup(server, shards=4), 1)
    with pytest.raises(ArchiveFault, match="has 1 shard; set ADA_SHARDS=1"):
        check_archive(await backup(server), 4)
    assert check_archive(await backup(server), 1).entries == 0


async def test_a_restore_at_a_primary_that_is_replaced_meanwhile_is_an_error(replica_set: ReplicaSet) -> None:
    """The old primary lives, and its clients reach it: nothing but the Sentinels knows that it is one no more."""
    old, sentinels = replica_set.primary, SentinelSet.parse(replica_set.url)
    entry = StoredValue(OURS.encode(), "hash", 0, [[b"t", b"1"]])

    def entries() -> Iterator[StoredValue]:
        old.hide()
        replica_set.await_promotion(old)
        yield entry

    with pytest.raises(SetupError, match="the primary was replaced during the restore; repeat it"):
        await restore(entries(), sentinels)
    replica_set.repair()
    assert not replica_set.primary.client.exists(OURS)
    await restore([entry], sentinels)
    assert replica_set.primary.client.exists(OURS)


# rights


async def test_a_user_without_a_right_learns_the_command_that_grants_it(server: Server, file: io.BytesIO) -> None:
    await _administer(server, "ACL", "SETUSER", "guest", "on", ">p", "~*", "&*", "+@all", "-@dangerous")
    address = replace(ServerAddress.parse(server.url), username="guest", password="p")
    works: list[Callable[[], Awaitable[None]]] = [
        lambda: _snapshot(address),
        lambda: restore(_entries(file), address, replaces=True),
    ]
    for work in works:
        with pytest.raises(SetupError, match="lacks a right that a") as refused:
            await work()
        await _administer(server, *str(refused.value).partition("redis-cli ")[2].split())
        await work()


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        (("SET", "queue:{0}:timer", "x"), "get"),
        (("HSET", OURS, "t", "x"), "hgetall"),
        (("RPUSH", "job-log:{0}:1", "x"), "lrange"),
        (("SADD", "sign-in:{0}:keys", "x"), "smembers"),
        (("ZADD", "queue:{0}:due", "1", "x"), "zrange"),
        (("XADD", "events:{0}", "1-1", "n", "x"), "xrange"),
        (("XADD", "events:{0}", "1-1", "n", "x"), "xinfo|stream"),
        (("SET", "queue:{0}:timer", "x"), "pexpiretime"),
    ],
    ids=str,
)
async def test_a_key_that_the_server_refuses_to_read_ends_the_backup(
    server: Server, kind: Sequence[str], command: str
) -> None:
    await _administer(server, *kind)
    await _administer(server, "ACL", "SETUSER", "guest", "reset", "on", ">p", "~*", "&*", "+@all", f"-{command}")
    address = replace(ServerAddress.parse(server.url), username="guest", password="p")
    with pytest.raises(SetupError, match="lacks a right that a backup needs"):
        await _snapshot(address)


async def _administer(server: Server, *command: str) -> None:
    administrator = await StoreConnection.open(ServerAddress.parse(server.url))
    await administrator.request(*command)
    administrator.close()


async def _snapshot(address: ServerAddress) -> None:
    await take_snapshot(address, ArchiveWriter(io.BytesIO(), ArchiveHeader(1, LAYOUT, 1, 0)))


def _entries(file: io.BytesIO) -> ArchiveReader:
    file.seek(0)
    return ArchiveReader(file)


async def test_an_uploaded_file_is_restored_byte_for_byte_with_its_lifetime(server: Server) -> None:
    content, loaded = bytes(range(256)) * 1500, io.BytesIO()  # in two parts
    store = await Store.open(server.url)
    stored = await Uploads(store).store("default", "report.pdf", io.BytesIO(content))
    file = await backup(server)
    await Uploads(store).delete("default", stored.id)
    await store.close()
    await put_back(file, server, replaces=True)
    store = await Store.open(server.url)
    assert await Uploads(store).find("default", stored.id) == stored
    assert await Uploads(store).load("default", stored.id, loaded)
    assert loaded.getvalue() == content
    await store.close()
