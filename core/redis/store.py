"""The connection to Redis/Valkey: functions by name and plain commands, batched automatically, each to the primary that
has its shard.

Guarantee: each call of `run` returns one reply of the function, also when the server restarts, its functions are
flushed or the connection breaks meanwhile. The function may have run more than once: every function is safe to repeat.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Self, TypeVar
from zlib import crc32

from redis.asyncio import Redis
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    RedisError,
    ResponseError,
)

from core.errors import AdaError, FunctionFault, SetupError, StoreError, StoreUnavailable
from core.model.durability import Durability
from core.model.history_key import own_name
from core.redis import library
from core.redis.cluster import ShardMap
from core.redis.connection import PROTOCOL, ServerAddress, Word, encoded
from core.redis.keys import KEYS
from core.redis.pipelines import LibraryLoads, Pipeline, Pipelines, ReplicatedPipeline
from core.redis.pipelines.pipeline import FAIL_OVER, Routes
from core.redis.primary import Primary, check_primary, is_scheme_wrong
from core.redis.refusals import explained, malformed_url, refused_write, wrong_scheme
from core.redis.topology import PrimaryMoved, PrimaryNotFound, Topology
from core.redis.witnesses import witnesses_of

log = logging.getLogger(__name__)


T = TypeVar("T")

_TIMEOUT = 10.0
# The server may lose the library again between its load and the call. A call loads it at most this many times.
_LOADS = 100
_TAG = re.compile(r"\{(\d+)\}")

Argument = Word | Sequence[Word]
"""Only a function with packed arguments takes a sequence."""


def shard_of_name(name: str, shards: int) -> int:
    return crc32(name.encode()) % shards


class Store:
    """One per process. `shards`: the number of shard tags over which work is spread. `redis`: a plain client, for
    commands that must not be repeated. `clock_offset_ms` moves the functions' clock in tests. `durability`: see
    `Durability`. `worked_tubes`: what the workers of this process take tasks from, for the register of processes;
    `tubes_changed` is set when a worker starts or ends. While it `is_quiet`, its workers claim nothing.
    `faults`: what this process cannot do now, and why, for the register of processes.
    """

    def __init__(
        self,
        url: str,
        shards: int = 1,
        *,
        patience: float = 30.0,
        durability: Durability = Durability.LOCAL,
    ) -> None:
        self.configured_url = url
        self.shard_map = ShardMap(url, shards)
        primary = Primary(shards)
        self.shard_map.call_first(primary.note)
        self.shards = shards
        self.clock_offset_ms = 0
        self.worked_tubes: set[str] = set()
        self.tubes_changed = asyncio.Event()
        self.is_quiet = False
        self.faults: dict[str, str] = {}

        def make(kind: Callable[..., Pipeline], at: Topology, routes: Routes) -> Pipeline:
            fail_over = patience if self.shard_map.cluster else FAIL_OVER
            return kind(at, patience, notes=primary.notes, routes=routes, fail_over=fail_over)

        self.pipelines = Pipelines(self.shard_map, partial(make, Pipeline))
        self._witnesses = witnesses_of(self.shard_map)
        confirmed = partial(ReplicatedPipeline, witnesses=self._witnesses)
        replicates = durability is Durability.REPLICA
        self._replicated = Pipelines(self.shard_map, partial(make, confirmed)) if replicates else self.pipelines
        self.library = library.current()
        # The declared key routes a call to its shard; the function derives the others from the same tag. A second one,
        # which never exists, has a cluster refuse the call while the keys of the slot are moved one by one.
        self._anchors = [
            (2, KEYS["counters"].at(shard), KEYS["guard"].at(shard), f"{{{shard}}}") for shard in range(shards)
        ]
        self._loads = LibraryLoads(self.library)
        self._clients: dict[str, Redis] = {}  # by URL of the primary

    @property
    def topology(self) -> Topology:
        """Return where the first shard is."""
        return self.shard_map.of(0)

    @property
    def address(self) -> ServerAddress:
        """Return the address of the primary that was found last for the first shard."""
        return self.topology.address

    @property
    def url(self) -> str:
        """Return the URL of the primary that was found last for the first shard, with its password."""
        return self.topology.url

    @property
    def redis(self) -> Redis:
        """Return a plain client of the primary that was found last for the first shard."""
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
        """Connect. `url`: redis://, rediss:// (TLS), unix://, redis+sentinel:// or redis+cluster://, with user and
        password.

        Raises StoreUnavailable if waiting may help; SetupError if the URL is wrong or the server refuses it.
        """
        try:
            store = cls(url, shards, patience=patience, durability=durability)
        except ValueError as fault:
            raise malformed_url(fault) from None
        try:
            async with asyncio.timeout(_TIMEOUT):
                await store.shard_map.read()
                for primary, homes in store.shard_map.primaries().items():
                    shard = homes[0] if homes[0] < shards else None
                    try:
                        await check_primary(primary, store.library, shard)
                    except PrimaryMoved:
                        await check_primary(primary, store.library, shard)
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

    def now(self) -> datetime:
        """Return the time by which the functions work, aware."""
        return datetime.now(UTC) + timedelta(milliseconds=self.clock_offset_ms)

    def now_ms(self) -> int:
        """Return the time by which the functions work, in Unix ms."""
        return int(time.time() * 1000) + self.clock_offset_ms

    def shard_of(self, name: str) -> int:
        """Return the shard of everything that belongs to this name: a lane, a sender, an Idempotency-Key, a tenant."""
        return shard_of_name(name, self.shards)

    def shard_of_person(self, tenant: str, channel: str, address: str) -> int:
        """Return the shard of everything that belongs to a person or a chat in a channel of a tenant: its state, runs,
        dialog. It is that of the lane of its updates and of the answers in its private chat, so these stand together.
        """
        return self.shard_of(own_name(tenant, f"{channel}:{address}"))

    def shard_of_tenant(self, tenant: str) -> int:
        """Return the shard of everything that belongs to a tenant as a whole (docs/decisions/0139)."""
        return self.shard_of(tenant)

    def tenant_key(self, name: str, tenant: str, *parts: str) -> str:
        """Return a key of a tenant, which is the first part of its name."""
        return KEYS[name].at(self.shard_of_tenant(tenant), tenant, *parts)

    def keys_of_shards(self, name: str, *parts: str) -> list[str]:
        """Return a key that each shard has."""
        return [KEYS[name].at(shard, *parts) for shard in range(self.shards)]

    def in_one_command(self, items: Sequence[T]) -> list[Sequence[T]]:
        """Split shards, or a key of each, into those whose keys one command may name: in a cluster each alone."""
        return [[item] for item in items] if self.shard_map.cluster else [items]

    def shard_of_account(self, tube: str, account: str) -> int:
        """Return the shard of what all processes of an outside account share: the rate of its calls."""
        return self.shard_of(f"{tube}:{account}")

    def home_of(self, *command: Word) -> int:
        """Return whose primary has the key of a command: its shard. 0 for a command without a key, and without a
        cluster, where it makes no difference.
        """
        if not self.shard_map.cluster:
            return 0
        for word in command[1:]:
            if isinstance(word, str) and (tag := _TAG.search(word)) and int(tag[1]) < self.shards:
                return int(tag[1])
        return self.shard_map.home_of(str(command[1])) if len(command) > 1 else 0

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        """Run the function `name`. Raises FunctionFault (a bug in Ada), StoreRefuses or StoreUnavailable."""
        return await self._run(self._pipelines_of(name), name, shard, arguments)

    async def run_for_tenant(self, name: str, tenant: str, *arguments: Argument) -> Any:
        """Run a function in the shard of a tenant, which is the first argument."""
        return await self.run(name, self.shard_of_tenant(tenant), tenant, *arguments)

    async def run_replicated(self, name: str, shard: int, *arguments: Argument) -> Any:
        """Run a function; with durability `replica` it returns when a replica has what was written by then. Also raises
        StoreRefuses if there is none.
        """
        return await self._run(self._replicated, name, shard, arguments)

    def _pipelines_of(self, name: str) -> Pipelines:
        return self._replicated if library.is_acknowledged(name) else self.pipelines

    async def _run(self, pipelines: Pipelines, name: str, shard: int, arguments: Sequence[Argument]) -> Any:
        call = self._call(name, shard, arguments)
        for _ in range(_LOADS):
            pipeline = pipelines.of(shard)
            load = self._loads.last(pipeline)
            try:
                return await pipeline.send(call, shard)
            except ResponseError as refusal:
                if not library.is_missing(refusal):
                    raise self._fault_of(refusal) from None
            try:
                self._loads.load(pipeline, shard, load)
            except ResponseError as failure:
                raise self._fault_of(failure) from None
        raise StoreUnavailable("The functions of Ada vanish from the server again and again.")

    async def run_each(self, name: str, calls: Iterable[tuple[int, Sequence[Argument]]]) -> list[Any]:
        """Run a function for each (shard, arguments), at once. Return the replies in order, faults as values."""
        pipelines = self._pipelines_of(name)
        in_flight = [(pipelines.of(call[0]).send(self._call(name, *call), call[0]), call) for call in calls]
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
        return encoded("FCALL", function.registered, *self.fixed_words(shard), *function.words(arguments))

    def fixed_words(self, shard: int) -> tuple[Word, ...]:
        """Return the words of a call between the function's name and its arguments."""
        return (*self._anchors[shard], self.clock_offset_ms)

    async def command(self, *command: Word) -> Any:
        """Send a plain command through the same pipelines: to the primary that has its key, one without a key to that
        of the first shard. It must be safe to repeat. Raises StoreError.
        """
        return await self.command_at(self.home_of(*command), *command)

    async def write(self, *command: Word) -> Any:
        """Send a plain command whose success is acknowledged: with durability `replica` it returns when a
        replica has what it wrote. Raises what `command` does, and StoreRefuses if there is no replica.
        """
        home = self.home_of(*command)
        try:
            return await self._replicated.of(home).call(*command, home=home)
        except ResponseError as refusal:
            raise self._fault_of(refusal) from None

    async def write_lasting(self, kept_ms: int, verb: str, key: str, *words: Word) -> Any:
        """Write as `write` does, and set the lifetime of the key in the same step."""
        return await self.run("write_lasting", self.home_of(verb, key), verb, key, kept_ms, *words)

    async def command_at(self, home: int, *command: Word) -> Any:
        """Send a command to the primary of a home, whatever the command names."""
        try:
            return await self.pipelines.of(home).call(*command, home=home)
        except ResponseError as refusal:
            raise self._fault_of(refusal) from None

    async def command_each(self, verb: str, keys: Sequence[str], *rest: Word) -> list[Any]:
        """Send a command for each of the keys, at once. Return the replies in order. Raises StoreError."""
        homes = [(self.home_of(verb, key), key) for key in keys]
        try:
            calls = [self.pipelines.of(home).call(verb, key, *rest, home=home) for home, key in homes]
            return list(await asyncio.gather(*calls))
        except ResponseError as refusal:
            raise self._fault_of(refusal) from None

    async def command_everywhere(self, *command: Word) -> dict[str, Any]:
        """Send a command without a key to every primary. Return the replies by address. Raises StoreError."""
        places = [(primary, homes[0]) for primary, homes in self.shard_map.primaries().items()]
        try:
            calls = [self.pipelines.of(home).call(*command, home=home) for _, home in places]
            replies = await asyncio.gather(*calls)
        except ResponseError as refusal:
            raise self._fault_of(refusal) from None
        return {str(primary): reply for (primary, _), reply in zip(places, replies, strict=True)}

    async def read_hash(self, key: str, *fields: str) -> list[str | None]:
        """Read fields of a hash; each None if there is no such key, or one of another type: the next function that
        meets it sets it aside (`lua/shared/modules/damaged.lua`). Raises StoreError.
        """
        try:
            home = self.home_of("HMGET", key)
            return list(await self.pipelines.of(home).call("HMGET", key, *fields, home=home))
        except ResponseError as refusal:
            if not str(refusal).startswith("WRONGTYPE"):
                raise self._fault_of(refusal) from None
            return [None] * len(fields)

    async def ping(self) -> bool:
        """Return whether every primary answers within a second."""
        try:
            return bool(await asyncio.wait_for(self.command_everywhere("PING"), 1.0))
        except (StoreError, TimeoutError):
            return False

    async def close(self) -> None:
        await self.pipelines.close()
        await self._replicated.close()
        if self._witnesses:
            await self._witnesses.close()
        await self.shard_map.close()
        for client in self._clients.values():
            await client.aclose()

    def _fault_of(self, refusal: ResponseError) -> StoreError:
        """Return the error of core for an error reply of the server."""
        return refused_write(refusal) or FunctionFault(self.library.where(str(refusal)))


BEGIN = -1
"""Before the first member; scores are whole numbers from 0."""


async def page_by_score(store: Store, key: str, after: int, most: int) -> list[tuple[str, int]]:
    """Return the members with a score over `after`, each with its score: at most `most`, and those besides whose score
    is that of the last one. Fewer than `most` are the last page. No member is passed over when earlier ones vanish
    while the set is read, as by rank. Raises StoreError.
    """
    page = await store.command("ZRANGEBYSCORE", key, f"({after}", "+inf", "WITHSCORES", "LIMIT", 0, most)
    if len(page) == most:
        last = page[-1][1]
        alike = await store.command("ZRANGEBYSCORE", key, last, last, "WITHSCORES")
        page = [*(one for one in page if one[1] != last), *alike]
    return [(member, int(score)) for member, score in page]
