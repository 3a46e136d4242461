"""The connection to Redis/Valkey: scripts by name and plain commands, batched automatically.

Guarantee: each call of `run` returns one reply of the script, also when the server restarts, its scripts are flushed or
the connection breaks meanwhile. The script may have run more than once: every script is safe to repeat.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Self

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, OutOfMemoryError, RedisError, ResponseError

from core.errors import ScriptFault, SetupError, StoreError, StoreFull, StoreUnavailable
from core.redis import scripts
from core.redis.connection import PROTOCOL, Connection, ServerAddress, Word, encoded
from core.redis.keys import KEYS
from core.redis.pipeline import Pipeline
from core.redis.refusals import explained, malformed_url

log = logging.getLogger(__name__)

_TIMEOUT = 10.0

Argument = Word | Sequence[Word]
"""Only a script with packed arguments takes a sequence."""


class Store:
    """One per process. `shards`: the number of shard tags over which work is spread. `redis`: a plain client, for
    commands that must not be repeated. `clock_offset_ms` moves the scripts' clock in tests.
    """

    def __init__(self, url: str, shards: int = 1, *, patience: float = 30.0) -> None:
        self.url = url
        self.address = ServerAddress.parse(url)
        self.redis: Redis = Redis.from_url(
            url, decode_responses=True, protocol=PROTOCOL, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT
        )
        self.shards = shards
        self.clock_offset_ms = 0
        self.pipeline = Pipeline(self.address, patience=patience)
        self._flags = True
        # The one declared key routes a call to its shard; the script derives the others from the same tag.
        self._anchors = [(1, KEYS["counters"].at(shard), f"{{{shard}}}") for shard in range(shards)]
        self._loads: dict[str, asyncio.Future[Any]] = {}

    @classmethod
    async def open(cls, url: str, shards: int = 1, *, patience: float = 30.0) -> Self:
        """Connect. `url`: redis://, rediss:// (TLS) or unix://, with user and password.

        Raises StoreUnavailable if waiting may help; SetupError if the URL is wrong or the server refuses it.
        """
        try:
            store = cls(url, shards, patience=patience)
        except ValueError as fault:
            raise malformed_url(fault) from None
        try:
            async with asyncio.timeout(_TIMEOUT):
                await store._check_server()
        except (RedisError, OSError, TimeoutError) as fault:
            await store.close()
            raise explained(fault, store.address) from None
        return store

    async def _check_server(self) -> None:
        """Raises SetupError for an old version; RedisError if the user may not use our keys or run scripts.

        HELLO and not INFO: a user without rights over the server may send it.
        """
        connection = await Connection.open(self.address)
        try:
            hello = await connection.request("HELLO")
            self._check_version(str(hello["version"]))
            anchor = KEYS["counters"].at(0)
            await connection.request("EXISTS", anchor)
            await connection.request("EVAL", "return redis.call('EXISTS', KEYS[1])", 1, anchor)
        finally:
            connection.close()

    def _check_version(self, version: str) -> None:
        major, minor, *_ = (int(part) for part in version.split("."))
        if (major, minor) < (6, 2):
            raise SetupError(f"Redis {version} is too old: 6.2 or Valkey is needed.")
        self._flags = major >= 7

    @property
    def flags(self) -> bool:
        """Whether the server takes scripts with a shebang line."""
        return self._flags

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        """Run the script `name`. Raises ScriptFault (a bug in Ada), StoreFull or StoreUnavailable."""
        script = scripts.load(name, self._flags)
        call = self._call(script, shard, arguments)
        load = self._loads.get(name)
        try:
            if load is None or not load.done():
                load = await self._load(script)
            try:
                return await self.pipeline.send(call)
            except NoScriptError:
                return await self._load_and_run(script, shard, arguments, load)
        except ResponseError as refusal:
            raise _fault_of(refusal, script) from None

    async def _load_and_run(
        self, script: scripts.Script, shard: int, arguments: Sequence[Argument], stale: "asyncio.Future[Any]"
    ) -> Any:
        """Run a script that the server lost (restart, SCRIPT FLUSH). If it is lost again meanwhile, send its text."""
        await self._load(script, stale)
        try:
            return await self.pipeline.send(self._call(script, shard, arguments))
        except NoScriptError:
            return await self.pipeline.call("EVAL", script.text, *self._rest(shard, script.words(arguments)))

    async def run_each(self, name: str, calls: Iterable[tuple[int, Sequence[Argument]]]) -> list[Any]:
        """`run` for each (shard, arguments), all in flight at once. Returns the replies in order, faults as values."""
        script = scripts.load(name, self._flags)
        await self._load(script)
        in_flight = [(self.pipeline.send(self._call(script, *call)), call) for call in calls]
        return [await self._reply(script, answer, call) for answer, call in in_flight]

    async def _reply(
        self, script: scripts.Script, answer: "asyncio.Future[Any]", call: tuple[int, Sequence[Argument]]
    ) -> Any:
        try:
            return await answer
        except NoScriptError:
            try:
                return await self.run(script.name, call[0], *call[1])
            except StoreError as fault:
                return fault
        except ResponseError as refusal:
            return _fault_of(refusal, script)
        except StoreUnavailable as fault:
            return fault

    def _call(self, script: scripts.Script, shard: int, arguments: Sequence[Argument]) -> bytes:
        return encoded("EVALSHA", script.sha, *self._rest(shard, script.words(arguments)))

    def _rest(self, shard: int, arguments: Sequence[Word]) -> tuple[Word, ...]:
        return (*self._anchors[shard], self.clock_offset_ms, *arguments)

    async def _load(self, script: scripts.Script, stale: "asyncio.Future[Any] | None" = None) -> "asyncio.Future[Any]":
        """One SCRIPT LOAD for all callers that find the script missing at once."""
        load = self._loads.get(script.name)
        if load is None or load is stale:
            load = self._loads[script.name] = self.pipeline.call("SCRIPT", "LOAD", script.text)
        try:
            await asyncio.shield(load)
        except (RedisError, StoreUnavailable):
            self._loads.pop(script.name, None)
            raise
        return load

    async def command(self, *command: Word) -> Any:
        """Send a plain command through the same pipeline. It must be safe to repeat. Raises StoreError."""
        try:
            return await self.pipeline.call(*command)
        except ResponseError as refusal:
            raise _fault_of(refusal) from None

    async def read_hash(self, key: str, *fields: str) -> list[str | None]:
        """Read fields of a hash; each None if there is no such key, or one of another type: the next script that meets
        it sets it aside (`lua/shared/damaged.lua`). Raises StoreError.
        """
        try:
            return list(await self.pipeline.call("HMGET", key, *fields))
        except ResponseError as refusal:
            if not str(refusal).startswith("WRONGTYPE"):
                raise _fault_of(refusal) from None
            return [None] * len(fields)

    async def ping(self) -> bool:
        """Whether the server answers within a second."""
        try:
            return bool(await asyncio.wait_for(self.command("PING"), 1.0))
        except (StoreError, TimeoutError):
            return False

    async def close(self) -> None:
        await self.pipeline.close()
        await self.redis.aclose()


def _fault_of(refusal: ResponseError, script: scripts.Script | None = None) -> StoreError:
    """The error of core for an error reply of the server."""
    if isinstance(refusal, OutOfMemoryError):
        return StoreFull("The memory of Redis is full (maxmemory).")
    return ScriptFault(script.where(str(refusal)) if script else str(refusal))
