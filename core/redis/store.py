"""The connection to Redis/Valkey: functions by name and plain commands, batched automatically.

Guarantee: each call of `run` returns one reply of the function, also when the server restarts, its functions are
flushed or the connection breaks meanwhile. The function may have run more than once: every function is safe to repeat.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Self
from zlib import crc32

from redis.asyncio import Redis
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
)

from core.errors import AdaError, FunctionFault, SetupError, StoreError, StoreFull, StoreUnavailable
from core.model.durability import Durability
from core.redis import library
from core.redis.connection import PROTOCOL, Connection, ServerAddress, Word, encoded
from core.redis.keys import KEYS
from core.redis.pipeline import Pipeline
from core.redis.primary import Primary
from core.redis.refusals import explained, malformed_url, refused_write, wrong_scheme
from core.redis.replicated_pipeline import ReplicatedPipeline
from core.redis.sentinels import PrimaryNotFound
from core.redis.tls_probe import is_scheme_wrong
from core.redis.topology import PrimaryMoved, Topology

log = logging.getLogger(__name__)


_TIMEOUT = 10.0
_OLDEST = 7  # Functions are there since Redis 7.0.
# The server may lose the library again between its load and the call. A call loads it at most this many times.
_LOADS = 100

Argument = Word | Sequence[Word]
"""Only a function with packed arguments takes a sequence."""


class Store:
    """One per process. `shards`: the number of shard tags over which work is spread. `redis`: a plain client, for
    commands that must not be repeated. `clock_offset_ms` moves the functions' clock in tests. `durability`: see
    `Durability`. `worked_tubes`: what the workers of this process take tasks from, for the register of processes;
    `tubes_changed` is set when a worker starts or ends.
    """

    def __init__(
        self,
        url: str,
        shards: int = 1,
        *,
        patience: float = 30.0,
        durability: Durability = Durability.LOCAL,
    ) -> None:
        self.topology = Topology(url)
        primary = Primary(shards)
        self.topology.first_call = primary.note
        self.shards = shards
        self.clock_offset_ms = 0
        self.worked_tubes: set[str] = set()
        self.tubes_changed = asyncio.Event()
        self.pipeline = Pipeline(self.topology, patience=patience, guards=primary.notes)
        replicates = durability is Durability.REPLICA
        self._replicated = ReplicatedPipeline(self.topology, patience, primary.notes) if replicates else self.pipeline
        self.library = library.current()
        # The one declared key routes a call to its shard; the function derives the others from the same tag.
        self._anchors = [(1, KEYS["counters"].at(shard), f"{{{shard}}}") for shard in range(shards)]
        self._loading: asyncio.Future[Any] | None = None
        self._clients: dict[str, Redis] = {}  # by URL of the primary

    @property
    def address(self) -> ServerAddress:
        """Return the address of the primary that was found last."""
        return self.topology.address

    @property
    def url(self) -> str:
        """Return the URL of the primary that was found last, with its password."""
        return self.topology.url

    @property
    def redis(self) -> Redis:
        """Return a plain client of the primary that was found last."""
        if self.url not in self._clients:
            self._clients[self.url] = Redis.from_url(
                self.url,
                decode_responses=True,
                protocol=PROTOCOL,
                socket_timeout=_TIMEOUT,
                socket_connect_timeout=_TIMEOUT,
            )
        return self._clients[self.url]

    @classmethod
    async def open(
        cls, url: str, shards: int = 1, *, patience: float = 30.0, durability: Durability = Durability.LOCAL
    ) -> Self:
        """Connect. `url`: redis://, rediss:// (TLS), unix:// or redis+sentinel://, with user and password.

        Raises StoreUnavailable if waiting may help; SetupError if the URL is wrong or the server refuses it.
        """
        try:
            store = cls(url, shards, patience=patience, durability=durability)
        except ValueError as fault:
            raise malformed_url(fault) from None
        try:
            async with asyncio.timeout(_TIMEOUT):
                try:
                    await store._check_server()
                except PrimaryMoved:
                    await store._check_server()
        except (RedisError, OSError, TimeoutError) as fault:
            await store.close()
            if isinstance(fault, PrimaryNotFound):
                raise (SetupError if fault.is_wrong_name else StoreUnavailable)(str(fault)) from None
            is_silent = not isinstance(fault, ResponseError | AuthenticationError | BusyLoadingError)
            if is_silent and await is_scheme_wrong(store.address):
                raise wrong_scheme(store.address) from None
            raise explained(fault, store.address) from None
        except AdaError:
            await store.close()
            raise
        return store

    async def _check_server(self) -> None:
        """Load the library. Raises SetupError for an old version; RedisError if the user may not use our keys or the
        functions.

        HELLO and not INFO: a user without rights over the server may send it.
        """
        connection = await self.topology.open()
        try:
            hello = await connection.request("HELLO")
            self._check_version(str(hello["version"]))
            anchor = KEYS["counters"].at(0)
            await connection.request("EXISTS", anchor)
            if not await connection.request("FUNCTION", "LIST", "LIBRARYNAME", self.library.name):
                await self._load_first(connection)
            await connection.request("FCALL", self.library.functions["audit_keys"].registered, *self._rest(0, ()))
        finally:
            connection.close()

    async def _load_first(self, connection: Connection) -> None:
        try:
            await connection.request("FUNCTION", "LOAD", self.library.text)
        except ResponseError as refusal:
            if isinstance(refusal, OutOfMemoryError):  # an earlier version may drain it
                raise StoreUnavailable(
                    f"{StoreFull()} It has no room for the functions of this version of Ada."
                ) from None
            if not library.is_loaded(refusal):
                raise

    def _check_version(self, version: str) -> None:
        if int(version.partition(".")[0]) < _OLDEST:
            raise SetupError(f"Redis {version} is too old: Redis 7.0 or Valkey is needed.")

    def shard_of(self, name: str) -> int:
        """Return the shard of everything that belongs to this name: a lane, a sender, an Idempotency-Key."""
        return crc32(name.encode()) % self.shards

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        """Run the function `name`. Raises FunctionFault (a bug in Ada), StoreRefuses or StoreUnavailable."""
        return await self._run(self._pipeline_of(name), name, shard, arguments)

    async def run_replicated(self, name: str, shard: int, *arguments: Argument) -> Any:
        """Do `run`; with durability `replica` it returns when a replica has what was written by then. Also raises
        StoreRefuses if there is none.
        """
        return await self._run(self._replicated, name, shard, arguments)

    def _pipeline_of(self, name: str) -> Pipeline:
        return self._replicated if name in library.ACKNOWLEDGED else self.pipeline

    async def _run(self, pipeline: Pipeline, name: str, shard: int, arguments: Sequence[Argument]) -> Any:
        call = self._call(name, shard, arguments)
        for _ in range(_LOADS):
            load = self._loading
            try:
                return await pipeline.send(call)
            except ResponseError as refusal:
                if not library.is_missing(refusal):
                    raise self._fault_of(refusal) from None
            self._load_after(load, pipeline)
        raise StoreUnavailable("The functions of Ada vanish from the server again and again.")

    async def run_each(self, name: str, calls: Iterable[tuple[int, Sequence[Argument]]]) -> list[Any]:
        """Do `run` for each (shard, arguments), at once. Return the replies in order, faults as values."""
        pipeline = self._pipeline_of(name)
        in_flight = [(pipeline.send(self._call(name, *call)), call) for call in calls]
        return [await self._reply(name, answer, call) for answer, call in in_flight]

    async def _reply(self, name: str, answer: "asyncio.Future[Any]", call: tuple[int, Sequence[Argument]]) -> Any:
        try:
            return await answer
        except ResponseError as refusal:
            if not library.is_missing(refusal):
                return self._fault_of(refusal)
        except StoreError as fault:
            return fault
        try:
            return await self.run(name, call[0], *call[1])
        except StoreError as fault:
            return fault

    def _call(self, name: str, shard: int, arguments: Sequence[Argument]) -> bytes:
        function = self.library.functions[name]
        return encoded("FCALL", function.registered, *self._rest(shard, function.words(arguments)))

    def _rest(self, shard: int, arguments: Sequence[Word]) -> tuple[Word, ...]:
        return (*self._anchors[shard], self.clock_offset_ms, *arguments)

    def _load_after(self, before: "asyncio.Future[Any] | None", pipeline: Pipeline) -> None:
        """Send the library to a server that lost it (restart, FUNCTION FLUSH, failover), once for all callers that find
        it missing at once. `before`: the last load when the call was sent. Raises what that load ended with.
        """
        if before and before.done() and (failure := before.exception()) and not library.is_loaded(failure):
            self._loading = None if self._loading is before else self._loading
            raise self._fault_of(failure) if isinstance(failure, ResponseError) else failure
        if self._loading is before:
            # The calls that follow on this connection are written behind it.
            self._loading = pipeline.call("FUNCTION", "LOAD", self.library.text)
            self._loading.add_done_callback(lambda load: load.cancelled() or load.exception())

    async def command(self, *command: Word) -> Any:
        """Send a plain command through the same pipeline. It must be safe to repeat. Raises StoreError."""
        try:
            return await self.pipeline.call(*command)
        except ResponseError as refusal:
            raise self._fault_of(refusal) from None

    async def read_hash(self, key: str, *fields: str) -> list[str | None]:
        """Read fields of a hash; each None if there is no such key, or one of another type: the next function that
        meets it sets it aside (`lua/shared/modules/damaged.lua`). Raises StoreError.
        """
        try:
            return list(await self.pipeline.call("HMGET", key, *fields))
        except ResponseError as refusal:
            if not str(refusal).startswith("WRONGTYPE"):
                raise self._fault_of(refusal) from None
            return [None] * len(fields)

    async def ping(self) -> bool:
        """Return whether the server answers within a second."""
        try:
            return bool(await asyncio.wait_for(self.command("PING"), 1.0))
        except (StoreError, TimeoutError):
            return False

    async def close(self) -> None:
        await self.pipeline.close()
        await self._replicated.close()
        await self.topology.close()
        for client in self._clients.values():
            await client.aclose()

    def _fault_of(self, refusal: ResponseError) -> StoreError:
        """Return the error of core for an error reply of the server."""
        return refused_write(refusal) or FunctionFault(self.library.where(str(refusal)))
