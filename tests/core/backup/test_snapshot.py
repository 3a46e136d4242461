"""A backup has all keys as they are at one moment, with their times to live, and writers hardly wait for it."""

import asyncio
import errno
import io
import os
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from core.backup import ArchiveHeader, ArchiveReader, ArchiveWriter, take_snapshot
from core.directory import Directory
from core.errors import AdaError, SetupError
from core.model.people import Group, User
from core.redis.connection import ServerAddress, encoded
from core.redis.keys import LAYOUT
from core.redis.topology import SentinelSet
from tests.conftest import StartServer
from tests.core.backup.backups import WatchedArchive, backup, has_no_connection_of_ada, put_back
from tests.support.replica_set import ReplicaSet
from tests.support.servers import Server, on_both_servers
from tests.support.stack import FakeCourier, Stack, people, sent
from tests.support.waiting import until

ACCOUNTS, EACH = 3000, 100
PATTERN = "history:{0}:1:%d:outcomes"
"""Hashes of Ada, which the tests use as accounts: what one gives another gets, so the sum stays."""
TRANSFER = """
redis.call('HINCRBY', KEYS[1], 'balance', -1)
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('HSET', KEYS[2], 'balance', 0) end
redis.call('HINCRBY', KEYS[2], 'balance', 1)
local moved = redis.call('HGET', KEYS[3], 'balance')
redis.call('DEL', KEYS[3])
redis.call('HINCRBY', KEYS[1], 'balance', moved or 0)
"""


async def dump(server: Server) -> dict[bytes, tuple[object, int]]:
    """Each key with its value as plain data, and when it expires."""
    async with Redis.from_url(server.url) as client:
        reads: Mapping[Any, Callable[[Any], Awaitable[object]]] = {
            b"string": client.get,
            b"hash": client.hgetall,
            b"list": lambda key: client.lrange(key, 0, -1),
            b"set": client.smembers,
            b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
            b"stream": lambda key: asyncio.gather(client.xrange(key), client.xinfo_stream(key)),
        }
        keys = [key async for key in client.scan_iter(count=1000)]
        return {key: (await reads[await client.type(key)](key), await client.pexpiretime(key)) for key in keys}


@pytest.mark.parametrize("source", ["valkey", "redis"])
@pytest.mark.parametrize("target", ["valkey", "redis"])
async def test_values_of_every_type_and_their_times_to_live_survive_on_any_server(
    servers: StartServer, source: str, target: str
) -> None:
    first, second = servers(source), servers(target)
    first.empty()
    async with Redis.from_url(first.url) as client:
        await client.set("queue:{0}:timer", b"\xff\x00", px=3_600_000)
        await client.set("scenarios:{0}:menus:a", b"")
        await client.hset("queue:{0}:turns", mapping={b"\xfe": b"1", b"": b"\xd0"})
        await client.hset("queue:{0}:weights", mapping={str(n): n for n in range(2500)})
        await client.zadd("queue:{0}:due", {"a": 0.1, "b": float("inf"), "c": float("-inf"), "d": 2**53 - 1})
        await client.sadd("sign-in:{0}:keys", b"a", b"\xff")
        await client.rpush("job-log:{0}:1", *range(2500))
        for number in range(1, 4):
            await client.xadd("events:{0}", {"n": number, "other": ""}, id=f"{number}-1")
        await client.xdel("events:{0}", "3-1")
        await client.xadd("reply:{0}:x", {"a": "b"}, id="7-1", maxlen=0, approximate=False)
        await client.pexpire("reply:{0}:x", 3_600_000)
        await client.set("foreign", "x")
    before = await dump(first)
    file = await backup(first)
    second.empty()
    async with Redis.from_url(second.url) as client:  # both may be one server, which has yet to see the backup's end
        await until(lambda: has_no_connection_of_ada(client))
    await put_back(file, second)
    after = await dump(second)
    assert {key: after[key][1] for key in after} == {key: before[key][1] for key in after}
    assert _comparable(after) == _comparable(before)
    assert before.keys() - after.keys() == {b"foreign"}


def _comparable(found: dict[bytes, tuple[object, int]]) -> dict[bytes, object]:
    """The values; of a stream without how the server keeps it."""
    names = ("last-generated-id", "entries-added", "max-deleted-entry-id", "length")
    values = {key: value for key, (value, _) in found.items() if key != b"foreign"}
    for key, value in values.items():
        if isinstance(value, list) and len(value) == 2 and isinstance(value[1], dict):
            values[key] = (value[0], {name: value[1][name] for name in names})
    return values


@dataclass
class Transfers:
    """Moves amounts between accounts, makes accounts and removes some. `steps`: how often until now."""

    server: Server
    accounts: int = 2 * ACCOUNTS
    steps: int = 0
    is_stopped: bool = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Eight at once, until the block is left."""
        async with Redis.from_url(self.server.url) as client:
            movers = [asyncio.create_task(self._move(client, random.Random(seed))) for seed in range(8)]
            try:
                yield
            finally:
                self.is_stopped = True
                await asyncio.gather(*movers)

    async def _move(self, client: Redis, chance: random.Random) -> None:
        script = client.register_script(TRANSFER)
        while not self.is_stopped:
            await script(keys=[PATTERN % chance.randrange(self.accounts) for _ in range(3)])
            self.steps += 1


@on_both_servers
async def test_a_backup_is_of_one_moment_while_others_write(server: Server, own_server: Server) -> None:
    async with Redis.from_url(server.url) as client, client.pipeline(transaction=False) as calls:
        for number in range(ACCOUNTS):
            calls.hset(PATTERN % number, "balance", EACH)
        await calls.execute()
    transfers = Transfers(server)
    async with transfers.running():
        await until(lambda: transfers.steps > 50)
        before = transfers.steps
        file = await backup(server)
        assert transfers.steps - before > 50
    await put_back(file, own_server)
    async with Redis.from_url(own_server.url) as client:
        balances = [int(await client.hget(key, "balance") or 0) async for key in client.scan_iter(count=1000)]
    assert sum(balances) == ACCOUNTS * EACH


async def test_no_change_is_missed_by_any_of_many_backups(server: Server) -> None:
    async with Redis.from_url(server.url) as client:
        await client.hset(PATTERN % 0, "balance", EACH)
    async with Transfers(server, accounts=20).running():
        for _ in range(120):
            file = await backup(server)
            file.seek(0)
            balances = {one.key: dict(one.value)[b"balance"] if one.value else 0 for one in ArchiveReader(file)}
            assert sum(map(int, balances.values())) == EACH


async def test_a_change_whose_name_comes_behind_the_reply_to_the_pause_is_in_the_backup(server: Server) -> None:
    """The server is stopped: it reads the change and the pause at once, and writes the reply first. The link lets the
    name of the changed key wait until the next request.
    """
    key = "queue:{0}:turns"
    async with Redis.from_url(server.url) as client:
        await client.set(key, "old")
    changes = socket.create_connection(("127.0.0.1", server.place.port))
    changes.sendall(encoded("AUTH", "default", server.place.password))
    assert changes.recv(100) == b"+OK\r\n"
    paused = False

    async def forward_requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal paused
        while request := await reader.read(65536):
            if b"PAUSE" in request and b"UNPAUSE" not in request and not paused:
                server.pause()
                changes.sendall(encoded("SET", key, "new"))
                writer.write(request)
                await writer.drain()
                paused = True
                server.resume()
            else:
                asked.set()
                writer.write(request)
        writer.close()

    async def forward_replies(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_held = False
        while replies := await reader.read(65536):
            if paused and not is_held and replies.startswith(b"+OK"):
                first, _, replies = replies.partition(b"\r\n")
                asked.clear()
                writer.write(first + b"\r\n")
                is_held = await asked.wait()
            writer.write(replies)
        writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", server.place.port)
        await asyncio.gather(forward_requests(reader, to_server), forward_replies(from_server, writer))

    asked = asyncio.Event()
    archive = WatchedArchive(lambda key: None)
    async with await asyncio.start_server(forward, "127.0.0.1", 0) as link:
        port = link.sockets[0].getsockname()[1]
        await take_snapshot(ServerAddress.parse(server.url_through(port)), archive)
    changes.close()
    assert archive.values() == {key.encode(): b"new"}


async def test_a_backup_ends_with_an_error_if_the_primary_is_lost_or_replaced_meanwhile(
    replica_set: ReplicaSet,
) -> None:
    """The old primary lives, and its clients reach it: nothing but the Sentinels knows that it is one no more."""
    sentinels, old = SentinelSet.parse(replica_set.url), replica_set.primary
    old.client.set("queue:{0}:turns", "x")

    def replace() -> None:
        old.hide()
        replica_set.await_promotion(old)

    def kill() -> None:
        replica_set.primary.kill()

    for blow, error in ((replace, "the primary was replaced"), (kill, "was lost")):
        blows = iter([blow])

        def strike(key: bytes, blows: Iterator[Callable[[], None]] = blows) -> None:
            for blow in blows:
                blow()

        archive = WatchedArchive(strike)
        with pytest.raises(AdaError, match=f"{error} during the backup"):
            await take_snapshot(sentinels, archive)
    replica_set.repair()
    await take_snapshot(sentinels, archive := WatchedArchive(lambda key: None))
    assert archive.values() == {b"queue:{0}:turns": b"x"}


async def test_writers_go_on_at_once_when_a_backup_ends_or_its_process_is_gone(server: Server) -> None:
    async with Redis.from_url(server.url, socket_timeout=60) as client:
        await client.hset("queue:{0}:turns", "t", 1)
        await backup(server)
        assert (await client.info("clients"))["paused_actions"] == "none"
        await client.hset("queue:{0}:turns", "t", 2)
        await client.client_pause(5000, all=False)  # as the last round does
        await client.hset("queue:{0}:turns", "t", 3)


async def test_keys_that_expire_during_a_backup_are_not_restored(server: Server, own_server: Server) -> None:
    async with Redis.from_url(server.url) as client:
        await client.set("queue:{0}:timer", "x", px=1)
        await client.set("queue:{0}:pace:t", "x", px=3_600_000)
        await until(lambda: client.pexpiretime("queue:{0}:timer"))
    await put_back(await backup(server), own_server)
    assert own_server.all_keys() == ["queue:{0}:pace:t"]


class FullDisk(io.RawIOBase):
    """Takes `room` bytes."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, data: Any) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return len(data)


@pytest.mark.parametrize(("keys", "room"), [(10, 200_000), (0, 12)], ids=["meanwhile", "at the end"])
async def test_a_disk_that_is_full_is_not_taken_for_a_fault_of_the_server(server: Server, keys: int, room: int) -> None:
    async with Redis.from_url(server.url) as client:
        for number in range(keys):
            await client.set(f"damaged:{{0}}:{number}", random.Random(number).randbytes(100_000))
    file: Any = FullDisk(room)
    archive = ArchiveWriter(file, ArchiveHeader(1, LAYOUT, 1, 0))
    with pytest.raises(SetupError, match="the file of the backup cannot be written: No space left on device"):
        await take_snapshot(ServerAddress.parse(server.url), archive)


async def test_a_database_that_is_emptied_meanwhile_ends_the_backup(server: Server) -> None:
    async with Redis.from_url(server.url) as client:
        async with client.pipeline(transaction=False) as calls:
            for number in range(20_000):
                calls.hset(PATTERN % number, "balance", EACH)
            await calls.execute()
        taking = asyncio.create_task(backup(server))
        await until(lambda: _tracks(client))
        await client.flushdb()
        with pytest.raises(SetupError, match="emptied during the backup"):
            await taking


async def _tracks(client: Redis) -> bool:
    return any("t" in one["flags"] for one in await client.client_list())


@on_both_servers
async def test_deliveries_go_on_from_a_backup_that_was_taken_while_they_were_sent(
    stack: Stack, own_server: Server
) -> None:
    directory = Directory(stack.store)
    await directory.users.create("default", User(1, "Анна", contacts={"sms": ["+79991112233"]}))
    await directory.groups.create("default", Group("g"), [1])
    later = await stack.deliver(*people(20), deliver_at=stack.now() + timedelta(hours=1))
    courier = FakeCourier("echo", sent)
    await stack.courier(courier)
    sending = asyncio.create_task(_send(stack))
    await until(lambda: len(courier.attempted) > 50)
    file = await backup(stack.server)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    await put_back(file, own_server)
    restored = await Stack.open(own_server)
    try:
        await restored.audit()
        assert await Directory(restored.store).users.find("default", 1) == await directory.users.find("default", 1)
        assert (await restored.history(later.key)).state == "scheduled"
        restored.advance_clock(timedelta(hours=2))
        await restored.courier(FakeCourier("echo", sent))
        history = await restored.finished(later.key)
        assert history.counts["sent"] == 20
    finally:
        await restored.end_everything()
        await restored.close()


async def _send(stack: Stack) -> None:
    while True:
        await asyncio.gather(*(stack.deliver(*people(5)) for _ in range(5)))
