"""A server that is silent for too long ends a backup, a restore and a migration with a sentence, also if its replies
come later: none is taken for that of another request.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from core.backup import restore, take_snapshot
from core.backup.archive import StoredValue
from core.backup.key_space import open_server
from core.backup.migration import Migration
from core.errors import StoreUnavailable
from core.redis.connection import ServerAddress, StoreConnection
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from tests.core.backup.backups import WatchedArchive, has_no_connection_of_ada
from tests.support.servers import Server
from tests.support.waiting import until

KEY = "queue:{0}:turns"


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("snapshot", "restore", "key_space"):
        monkeypatch.setattr(importlib.import_module(f"core.backup.{name}"), "PATIENCE", 0.5)


class LateReplies:
    """A link to a server. The replies to the first request with `word` come together with those to the next request."""

    def __init__(self, server: Server, word: bytes) -> None:
        self._server, self._word = server, word
        self._is_late, self._asked = False, asyncio.Event()
        self._opened: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def address(self) -> AsyncIterator[ServerAddress]:
        async with await asyncio.start_server(self._forward, "127.0.0.1", 0) as link:
            try:
                yield ServerAddress.parse(self._server.url_through(link.sockets[0].getsockname()[1]))
            finally:
                for one in self._opened:
                    one.close()
                    with suppress(ConnectionError):
                        await one.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._server.place.port)
        self._opened.append(to_server)
        with suppress(ConnectionError):
            await asyncio.gather(self._forward_requests(reader, to_server), self._forward_replies(from_server, writer))

    async def _forward_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await reader.read(65536):
            if self._is_late:
                self._asked.set()
            self._is_late = self._is_late or self._word in request
            writer.write(request)

    async def _forward_replies(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while replies := await reader.read(65536):
            if self._is_late and not self._asked.is_set():
                await self._asked.wait()
                replies += await reader.read(65536)
            writer.write(replies)


async def _back_up(server: Server, address: ServerAddress) -> None:
    await take_snapshot(address, WatchedArchive(lambda key: None))


async def _restore(server: Server, address: ServerAddress) -> None:
    await restore([StoredValue(KEY.encode(), "hash", 0, [[b"t", b"2"]])], address, replaces=True)


async def _migrate(server: Server, address: ServerAddress) -> None:
    """From the server to another database of it."""
    store = await Store.open(server.url)
    await sign_layout(store)
    await store.close()
    async with Redis.from_url(server.url) as client:
        await until(lambda: has_no_connection_of_ada(client))
    target = replace(ServerAddress.parse(server.url), database=1)
    async with open_server(address, "ADA_REDIS_URL") as old, open_server(target, "--to") as new:
        await Migration(old, new).run()


@pytest.mark.parametrize(
    ("work", "word"),
    [
        (_back_up, b"SCAN"),
        (_back_up, b"HGETALL"),
        (_back_up, b"PAUSE"),
        (_restore, b"DBSIZE"),
        (_restore, b"HSET"),
        (_restore, b"SWAPDB"),
        (_migrate, b"SCAN"),
        (_migrate, b"HGETALL"),
    ],
)
async def test_late_replies_of_a_silent_server_are_not_taken_for_others(
    server: Server, work: Callable[[Server, ServerAddress], Awaitable[None]], word: bytes
) -> None:
    async with Redis.from_url(server.url) as client:
        await client.hset(KEY, "t", 1)
    async with LateReplies(server, word).address() as address:
        with pytest.raises(StoreUnavailable, match="did not answer within"):
            await work(server, address)


async def test_a_connection_whose_call_was_cancelled_takes_no_other_call(server: Server) -> None:
    connection = await StoreConnection.open(ServerAddress.parse(server.url))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await connection.request("BLPOP", "nothing", 60)
    assert connection.lost.done()
    with pytest.raises(RedisConnectionError, match="did not wait"):
        await connection.request("PING")
