"""One connection to Redis/Valkey: asyncio opens it, hiredis parses it, RESP3 is its protocol.

Replies are passed to callbacks as they arrive, so no task is scheduled for a reply. The callbacks must not block.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import hiredis
from redis.asyncio.connection import SSLConnection, parse_url
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError

Word = bytes | str | int | float
Reply = Any
OnReply = Callable[[Reply], None]

PROTOCOL = 3
"""The RESP version of every connection."""

NAME = "ada"
"""The name of every connection in CLIENT LIST: a restore checks whether any process of Ada is connected."""

_TIMEOUT = 10.0
# Bytes that another program has stored and that are no UTF-8 are read as \\xff: an error would end the connection.
_NOT_TEXT = "backslashreplace"
_INCOMPLETE = object()
_ERRORS: dict[str, type[RedisError]] = {
    "LOADING": BusyLoadingError,
    "NOAUTH": AuthenticationError,
    "OOM": OutOfMemoryError,
    "WRONGPASS": AuthenticationError,
}
_REPLICA = {"replica", "slave", b"replica", b"slave"}
_TOO_MANY_CLIENTS = "ERR max number of clients reached"
PATIENCE = 3.0
"""Seconds."""


def encoded(*command: Word) -> bytes:
    """Return a command in the protocol's form."""
    words: bytes = hiredis.pack_command(command)  # type: ignore[arg-type] # its stub wants exactly one word
    return words


def error_of(text: str) -> RedisError:
    """Return the exception for the server's error text. A ConnectionError refuses the connection, not the command."""
    if text == _TOO_MANY_CLIENTS:
        return RedisConnectionError(text)
    return _ERRORS.get(text.partition(" ")[0], ResponseError)(text)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server, and the login. `path`: of a Unix socket, which replaces host and port."""

    host: str
    port: int
    path: str
    database: int
    username: str
    password: str = field(repr=False)
    tls: ssl.SSLContext | None

    @classmethod
    def parse(cls, url: str) -> "ServerAddress":
        """Parse a URL as redis-py takes it: redis://, rediss:// or unix://. Raises ValueError without any secret."""
        parts = _url_parts(url)
        is_tls = parts.pop("connection_class", None) is SSLConnection
        return cls(
            host=parts.get("host", "localhost"),
            port=parts.get("port", 6379),
            path=parts.get("path", ""),
            database=int(parts.get("db", 0)),
            username=parts.get("username", "default"),
            password=parts.get("password", ""),
            tls=SSLConnection(**parts).ssl_context.get() if is_tls else None,
        )

    def __str__(self) -> str:
        """Return the URL without the password, for people."""
        user = "" if self.username == "default" else f"{quote(self.username)}@"
        if self.path:
            return f"unix://{user}{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'rediss' if self.tls else 'redis'}://{user}{host}:{self.port}/{self.database}"


def _url_parts(url: str) -> dict[str, Any]:
    """Return the parts that `parse_url` returns. That takes database 0 if the path is not a number, and quotes parts of
    a password in its errors; this raises ValueError without secrets.
    """
    scheme, path = url.partition(":")[0], url.partition("?")[0].partition("://")[2].partition("/")[2]
    if scheme not in ("redis", "rediss", "unix"):
        raise ValueError(
            "it begins with none of redis://, rediss://, unix://, redis+sentinel://, rediss+sentinel://, "
            "redis+cluster:// and rediss+cluster://"
        )
    if scheme != "unix" and path and not path.isdecimal() and "@" not in path:
        raise ValueError(f"after the port it has {path!r}, which is not the number of a database")
    try:
        parts: dict[str, Any] = {**parse_url(url)}
    except ValueError:
        raise ValueError(
            "its port or an option is wrong, or a special character of the password is not quoted (/ is %2F)"
        ) from None
    return parts


def ignore(reply: Reply) -> None:
    """Ignore a reply: none is expected."""


def nothing_to_resume() -> None:
    """Do nothing: nothing waits for the connection to become writable."""


class StoreConnection(asyncio.Protocol):
    """An open connection. `lost` holds the reason once it is closed. `paused`: the server does not read fast enough;
    `on_resume` is called when it does again. `is_replica`: what the server said of itself at the login.
    """

    def __init__(
        self, on_reply: OnReply, on_push: OnReply, on_resume: Callable[[], None], encoding: str | None = "utf-8"
    ) -> None:
        self.lost: asyncio.Future[RedisError] = asyncio.get_running_loop().create_future()
        self.paused = False
        self.is_replica = False
        self.address: ServerAddress
        self._on_reply = on_reply
        self._on_push = on_push
        self._on_resume = on_resume
        self._reader = hiredis.Reader(
            encoding=encoding, errors=_NOT_TEXT, replyError=error_of, notEnoughData=_INCOMPLETE
        )
        self._transport: asyncio.Transport

    @classmethod
    async def open(
        cls,
        address: ServerAddress,
        on_reply: OnReply = ignore,
        on_push: OnReply = ignore,
        on_resume: Callable[[], None] = nothing_to_resume,
        encoding: str | None = "utf-8",
    ) -> "StoreConnection":
        """Connect and log in. `on_reply` gets the replies in order, errors as values; `on_push` gets what the server
        sends unasked; `encoding`: of both, None for bytes. Raises RedisError, OSError or TimeoutError.
        """

        def make() -> StoreConnection:
            return cls(on_reply, on_push, on_resume, encoding)

        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_TIMEOUT):
            if address.path:
                _, connection = await loop.create_unix_connection(make, address.path)
            else:
                _, connection = await loop.create_connection(make, address.host, address.port, ssl=address.tls)
            connection.address = address
            try:
                await connection._log_in(address)
            except BaseException:  # also a cancellation or the timeout: the socket is closed
                connection.close()
                raise
        return connection

    async def _log_in(self, address: ServerAddress) -> None:
        login = ("AUTH", address.username, address.password) if address.password else ()
        hello = await self.request("HELLO", PROTOCOL, *login, "SETNAME", NAME)
        self.is_replica = {hello.get("role"), hello.get(b"role")} & _REPLICA != set()
        if address.database:
            await self.request("SELECT", address.database)

    async def request(self, *command: Word) -> Reply:
        """Send one command and wait for its reply. Not for use while other replies are due. Raises RedisError."""
        (found,) = await self.request_all([command])
        if isinstance(found, RedisError):
            raise found
        return found

    async def request_all(self, commands: Sequence[Sequence[Word]]) -> list[Reply]:
        """Send commands at once and wait for their replies, errors as values. Not for use while other replies are due.
        Raises RedisError if the connection is lost. A call that is cancelled closes it: the replies that are due would
        be taken for those of the next call.
        """
        replies: list[Reply] = []
        complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def take(reply: Reply) -> None:
            replies.append(reply)
            if len(replies) == len(commands):
                complete.set_result(None)

        on_reply, self._on_reply = self._on_reply, take
        self.write(b"".join(encoded(*command) for command in commands))
        ends: set[asyncio.Future[Any]] = {complete, self.lost}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._on_reply = on_reply
            if not complete.done():
                self.cut(RedisConnectionError("a call did not wait for its replies"))
        if not complete.done():
            raise self.lost.result()
        return replies

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def cut(self, reason: RedisError) -> None:
        """Close at once. Whether the commands in flight ran is unknown."""
        if not self.lost.done():
            self.lost.set_result(reason)
        self._transport.abort()

    def close(self) -> None:
        self.cut(RedisConnectionError("closed by Ada"))

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while not self.lost.done() and (reply := self._reader.gets()) is not _INCOMPLETE:
                self._take(reply)
        except hiredis.ProtocolError as fault:
            self.cut(RedisConnectionError(str(fault)))

    def _take(self, reply: Reply) -> None:
        if isinstance(reply, RedisConnectionError):
            self.cut(reply)
        elif isinstance(reply, hiredis.PushNotification):
            self._on_push(reply)
        else:
            self._on_reply(reply)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._on_resume()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(RedisConnectionError(str(exc) if exc else "closed by the server"))


class OutageLog:
    """`what`: what has failed, as the first words of the line."""

    def __init__(self, log: logging.Logger, what: str, patience: float = PATIENCE) -> None:
        self._log = log
        self._what = what
        self._patience = patience
        self._since: float | None = None
        self._is_logged = False

    def failed(self, reason: Exception) -> None:
        """Note a failure; log the outage once it has lasted longer than the patience."""
        text = str(reason) or type(reason).__name__
        self._log.debug("%s: %s", self._what, text)
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if not self._is_logged and now - self._since >= self._patience:
            self._is_logged = True
            self._log.warning("%s: %s", self._what, text)

    def ended(self) -> None:
        """Note that it works again; log the end of an outage that was logged."""
        if self._is_logged:
            self._log.warning("works again, after: %s", self._what)
        self._since, self._is_logged = None, False
