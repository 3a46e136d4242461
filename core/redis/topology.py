"""The address of the primary, and the one place where connections to it are opened.

    redis://host:port/0                                     one server
    redis+sentinel://host:26379,host:26379/name/0           the primary that these Sentinels call `name`
    rediss+sentinel://user:password@host:26379/name         with TLS, to the servers and to the Sentinels

User, password, database and options are those of the servers; `sentinel_username` and `sentinel_password` are options
for the Sentinels. With Sentinels, a connection leads to a server that says it is the primary, or is not opened; when a
Sentinel reports another primary, connections to the old one are cut at once, so that a frozen server holds up nothing.

Used by `core.redis.cluster`, which has one of these for each primary of a cluster.
"""

import asyncio
import logging
import re
import weakref
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.connection import OnReply, Reply, ServerAddress, StoreConnection, encoded, ignore, nothing_to_resume

T = TypeVar("T")

SENTINEL_FORM = "redis+sentinel://user:password@host:26379,host:26379/name/0"

_URL = re.compile(r"(rediss?)\+sentinel://(?:([^/?]*)@)?([^/?@]*)(?:/([^/?]*))?(?:/([^?]*))?(?:\?(.*))?")
_PLACE = re.compile(r"(\[[0-9a-fA-F:]+\]|[^:\[\]]+)(?::(\d{1,5}))?")
_SENTINEL_PORT = 26379


@dataclass(frozen=True, slots=True)
class SentinelSet:
    """The Sentinels that watch the primary `name`, and how to log in at the servers."""

    name: str
    sentinels: tuple[ServerAddress, ...]
    login: str = field(repr=False)
    scheme: str
    database: str
    options: str = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> "SentinelSet":
        """Parse a URL of the form above. Raises ValueError, which names no secret."""
        if not (found := _URL.fullmatch(url)):
            raise ValueError(f"a URL of Sentinels has the form {SENTINEL_FORM}")
        scheme, login, places, name, database, query = (part or "" for part in found.groups())
        if "@" in name + database:
            raise ValueError("a special character of the password is not quoted (/ is %2F)")
        if not name:
            raise ValueError("it does not name the primary: the name follows the Sentinels, as in host:26379/name")
        if database and not database.isdecimal():
            raise ValueError(f"after the name it has {database!r}, which is not the number of a database")
        options = dict(parse_qsl(query))
        user, password = options.pop("sentinel_username", ""), options.pop("sentinel_password", "")
        account = f"{quote(user, '')}:{quote(password, '')}@" if user or password else ""
        own = urlencode({name: value for name, value in options.items() if name.startswith("ssl_")})
        sentinels = [
            ServerAddress.parse(f"{scheme}://{account}{host}:{port}?{own}")
            for host, port in server_places(places, "Sentinel", _SENTINEL_PORT)
        ]
        return cls(name, tuple(sentinels), f"{login}@" if login else "", scheme, database or "0", urlencode(options))

    def url_of(self, host: str, port: int) -> str:
        """Return the URL of a server of the set, with its password."""
        place = f"[{host}]" if ":" in host else host
        return f"{self.scheme}://{self.login}{place}:{port}/{self.database}?{self.options}"

    def __str__(self) -> str:
        """Return the URL without the password, for people."""
        places = ",".join(f"{one.host}:{one.port}" for one in self.sentinels)
        return f"{self.scheme}+sentinel://{places}/{self.name}/{self.database}"


def server_places(text: str, kind: str, default: int) -> list[tuple[str, int]]:
    """Return host and port of each server of a list; `kind`: what they are. Raises ValueError."""
    found = []
    for place in text.split(","):
        if not (parts := _PLACE.fullmatch(place)) or int(parts[2] or 0) > 65535:
            raise ValueError(f"{place!r} is not the host:port of a {kind}")
        found.append((parts[1], int(parts[2] or default)))
    return found


def is_sentinel_url(url: str) -> bool:
    return url.partition(":")[0] in ("redis+sentinel", "rediss+sentinel")


ANSWER = 1.0
"""Seconds for a Sentinel's answer. A frozen one must not delay the others."""


class PrimaryNotFound(RedisConnectionError):
    """No primary can be named at present. `code` is stable; `is_wrong_name`: waiting does not help."""

    def __init__(self, code: str, detail: str, *, is_wrong_name: bool = False) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.is_wrong_name = is_wrong_name


async def find_primary(sentinels: SentinelSet) -> tuple[int, str, int]:
    """Return epoch, host and port of the primary: the newest that a majority reports, or that is reported within a
    second. Raises PrimaryNotFound.
    """
    known, faults = await of_majority([ask(sentinels.name, one) for one in sentinels.sentinels])
    if not known:
        raise _not_found(sentinels, faults)
    return max(known)


async def of_majority(calls: Collection[Coroutine[Any, Any, T]]) -> tuple[list[T], list[Exception]]:
    """Return what the first servers report, until they are a majority, and their faults; it waits for no other."""
    asking = [asyncio.create_task(call) for call in calls]
    known: list[T] = []
    faults: list[Exception] = []
    try:
        for answer in asyncio.as_completed(asking):
            try:
                known.append(await answer)
            except (RedisError, OSError, TimeoutError) as fault:
                faults.append(fault)
            if len(known) > len(asking) // 2:
                break
    finally:
        await cancel_and_wait(*(one for one in asking if not one.done()))
        await asyncio.gather(*asking, return_exceptions=True)  # faults that nobody needs are not logged
    return known, faults


async def ask(name: str, sentinel: ServerAddress) -> tuple[int, str, int]:
    """Return epoch, host and port of the primary as one Sentinel knows it.

    The Sentinel that leads a promotion lists the old server under the new epoch until all replicas follow the new one.
    By GET-MASTER-ADDR-BY-NAME it names the new one.
    """
    async with asyncio.timeout(ANSWER):
        connection = await StoreConnection.open(sentinel)
        try:
            facts = await connection.request("SENTINEL", "MASTER", name)
            host, port = await connection.request("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)
        finally:
            connection.close()
    return int(facts["config-epoch"]), str(host), int(port)


def _not_found(sentinels: SentinelSet, faults: Sequence[Exception]) -> PrimaryNotFound:
    """Return why no Sentinel names the primary: the first reason that waiting does not mend, else the first."""
    for fault in faults:
        if "No such master" in str(fault) or "No such primary" in str(fault):
            return PrimaryNotFound(
                "SENTINEL_NAME_UNKNOWN",
                f"the Sentinels of {sentinels} know no primary {sentinels.name!r}. Correct the name in ADA_REDIS_URL; "
                "redis-cli -p 26379 SENTINEL MASTERS lists those that they know.",
                is_wrong_name=True,
            )
        if isinstance(fault, AuthenticationError | ResponseError):
            return PrimaryNotFound(
                "SENTINEL_REFUSES",
                f"a Sentinel of {sentinels} refuses: {fault}. Its password is the option sentinel_password of "
                "ADA_REDIS_URL.",
                is_wrong_name=True,
            )
    reason = str(faults[0]) or type(faults[0]).__name__
    return PrimaryNotFound("SENTINEL_UNREACHABLE", f"no Sentinel of {sentinels} answers: {reason}")


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
