"""The address of the primary, and the one place where connections to it are opened.

    redis://host:port/0                                     one server
    redis+sentinel://host:26379,host:26379/name/0           the primary that these Sentinels call `name`
    rediss+sentinel://user:password@host:26379/name         with TLS, to the servers and to the Sentinels

User, password, database and options are those of the servers; `sentinel_username` and `sentinel_password` are options
for the Sentinels. With Sentinels, a connection leads to a server that says it is the primary, or is not opened; when a
Sentinel reports another primary, connections to the old one are cut at once, so that a frozen server holds up nothing.

Used by `core.redis.cluster.shard_map`, which has one of these for each primary of a cluster.
"""

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.connection import OnReply, Reply, ServerAddress, StoreConnection, encoded, ignore, nothing_to_resume
from core.redis.sentinels import ANSWER, SentinelSet, ask, find_primary, is_sentinel_url

log = logging.getLogger(__name__)

_SWITCH = "+switch-master"
# Seconds between two checks that the subscription at a Sentinel is alive, and until a lost one is opened again.
_ALIVE = 5.0
_AGAIN = 0.5


class PrimaryMoved(RedisConnectionError):
    """The Sentinels name another primary than the connected one. Another attempt leads there."""

    def __init__(self) -> None:
        super().__init__("the primary is another server now")


async def _nothing_first(connection: StoreConnection) -> None:
    """Call nothing first."""


def _refuse_replica(connection: StoreConnection) -> None:
    """Close a connection to a replica. Raises RedisError then."""
    if connection.is_replica:
        connection.close()
        raise RedisConnectionError(f"{connection.address} is a replica at present")


class Topology:
    """One primary. `address`, `url`: of the server that was found last; before the first connection those of the first
    Sentinel. `first_call` is awaited on every new connection before it is used. `must_be_primary`: no connection to a
    replica is opened.
    """

    def __init__(self, url: str, *, must_be_primary: bool = False) -> None:
        self.sentinels = SentinelSet.parse(url) if is_sentinel_url(url) else None
        first = self.sentinels.sentinels[0] if self.sentinels else None
        self.url = self.sentinels.url_of(first.host, first.port) if self.sentinels and first else url
        self.address = ServerAddress.parse(self.url)
        self.first_call: Callable[[StoreConnection], Awaitable[None]] = _nothing_first
        self.must_be_primary = must_be_primary
        self._is_current = self.sentinels is None
        self._connections: weakref.WeakSet[StoreConnection] = weakref.WeakSet()
        self._moved: asyncio.Future[None] | None = None
        self._watching: list[asyncio.Task[None]] = []
        self._epoch = 0
        self._following: set[asyncio.Task[None]] = set()

    def __str__(self) -> str:
        """Return the URL without the password, for people."""
        return str(self.sentinels or self.address)

    @property
    def place(self) -> str:
        """Return host:port of the server that was found last, or the path of its socket."""
        return self.address.path or f"{self.address.host}:{self.address.port}"

    async def open(
        self,
        on_reply: OnReply = ignore,
        on_push: OnReply = ignore,
        on_resume: Callable[[], None] = nothing_to_resume,
        encoding: str | None = "utf-8",
    ) -> StoreConnection:
        """Connect to the primary, as `StoreConnection.open` does. Raises RedisError, OSError or TimeoutError."""
        if self.sentinels is None:
            connection = await StoreConnection.open(self.address, on_reply, on_push, on_resume, encoding)
            if self.must_be_primary:
                _refuse_replica(connection)
        else:
            connection = await self._open_primary(self.sentinels, on_reply, on_push, on_resume, encoding)
        try:
            await self.first_call(connection)
        except BaseException:  # also a cancellation: the socket is closed
            connection.close()
            raise
        return connection

    async def _open_primary(
        self,
        sentinels: SentinelSet,
        on_reply: OnReply,
        on_push: OnReply,
        on_resume: Callable[[], None],
        encoding: str | None,
    ) -> StoreConnection:
        self._watch(sentinels)
        if not self._is_current:
            self._move(*await find_primary(sentinels))
        self._is_current = False  # until this connection has shown that it leads to the primary
        address = self.address
        connection = await self._unless_moved(StoreConnection.open(address, on_reply, on_push, on_resume, encoding))
        _refuse_replica(connection)
        self._is_current = address == self.address
        self._connections.add(connection)
        connection.lost.add_done_callback(partial(self._note_loss, address))
        return connection

    async def _unless_moved(self, opening: Awaitable[StoreConnection]) -> StoreConnection:
        """Wait for a connection; end the attempt when the primary turns out to be another server."""
        attempt = asyncio.ensure_future(opening)
        try:
            ends: set[asyncio.Future[Any]] = {attempt, self._next_move()}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if attempt.done():
                return attempt.result()
        finally:
            attempt.cancel()
        raise PrimaryMoved

    def _next_move(self) -> "asyncio.Future[None]":
        self._moved = self._moved or asyncio.get_running_loop().create_future()
        return self._moved

    async def pause(self, seconds: float) -> None:
        """Wait until the next attempt to connect; less long if the primary turns out to be another server."""
        await asyncio.wait([self._next_move()], timeout=seconds)

    def _note_loss(self, address: ServerAddress, _: "asyncio.Future[RedisError]") -> None:
        self._is_current = self._is_current and address != self.address

    def _move(self, epoch: int, host: str, port: int) -> None:
        """Go to the server at this address; connections to another one are cut. What is older than what is known is
        ignored: a late Sentinel would lead back to an old primary, which may even have a replica left.
        """
        assert self.sentinels
        if epoch < self._epoch:
            return
        self._epoch = epoch
        url = self.sentinels.url_of(host, port)
        if url != self.url:
            self.url, self.address = url, ServerAddress.parse(url)
            log.info("the primary %s is %s:%s", self.sentinels.name, host, port)
            if self._moved and not self._moved.done():
                self._moved.set_result(None)
            self._moved = None
        for connection in [one for one in self._connections if one.address != self.address]:
            connection.cut(PrimaryMoved())

    # watching

    def _watch(self, sentinels: SentinelSet) -> None:
        if not self._watching:
            self._watching = [
                asyncio.create_task(self._listen_always(sentinels, one), name=f"sentinel {one}")
                for one in sentinels.sentinels
            ]

    async def _listen_always(self, sentinels: SentinelSet, sentinel: ServerAddress) -> None:
        while True:
            with suppress(RedisError, OSError, TimeoutError):
                await self._listen(sentinels, sentinel)
            await asyncio.sleep(_AGAIN)

    async def _listen(self, sentinels: SentinelSet, sentinel: ServerAddress) -> None:
        """Follow what one Sentinel reports until it cannot be reached. A move before the subscription is looked up."""
        async with asyncio.timeout(ANSWER):
            connection = await StoreConnection.open(sentinel, on_push=partial(self._take_report, sentinel))
        try:
            connection.write(encoded("SUBSCRIBE", _SWITCH))
            self._move(*await find_primary(sentinels))
            while not connection.lost.done():
                await asyncio.wait([connection.lost], timeout=_ALIVE)
                async with asyncio.timeout(ANSWER):
                    await connection.request("PING")
        finally:
            connection.close()

    def _take_report(self, sentinel: ServerAddress, push: Reply) -> None:
        if push[0] == "message" and self.sentinels and push[2].startswith(f"{self.sentinels.name} "):
            following = asyncio.create_task(self._follow(self.sentinels, sentinel), name="sentinel report")
            self._following.add(following)
            following.add_done_callback(self._following.discard)

    async def _follow(self, sentinels: SentinelSet, sentinel: ServerAddress) -> None:
        """Go where the Sentinel leads that has reported another primary: the others may not know it yet."""
        with suppress(RedisError, OSError, TimeoutError):
            self._move(*await ask(sentinels.name, sentinel))
            self._is_current = True

    async def close(self) -> None:
        """End the watching; connections are closed by the code that opened them."""
        await cancel_and_wait(*self._watching, *self._following)
        self._watching = []
