"""Many small queues side by side on one server: each in a shard of its own, with a clock of its own.

    ShardState ─▶ ManyShards.step(state, call), hundreds at once ─▶ ShardState ─▶ …

A `ShardState` is everything that the server keeps in one shard (every key with its TTL, as DUMP returns it) and the
shard's time. Any script can be tried on the same state again and again, so the results differ by the script alone.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redis.asyncio import Redis

from core.audit.audit import Audit
from core.audit.invariants.invariant import Violation
from core.audit.scanner import Scanner
from core.redis.connection import Word
from core.redis.keys import KEYS
from core.redis.store import Argument, Store
from tests.support.audited import StoredKey, dump_through
from tests.support.limits import REPLY
from tests.support.servers import Server

HOUR_MS = 3_600_000
AT_ONCE = 300
"""States on the server at a time: KEYS of all of them is one short command."""

_RESTORE = "for n = 1, #ARGV, 3 do redis.call('RESTORE', ARGV[n], ARGV[n + 1], ARGV[n + 2]) end"
_SERIALIZE = """
local found = {}
for n, key in ipairs(ARGV) do found[n] = { math.max(redis.call('PTTL', key), 0), redis.call('DUMP', key) } end
return found
"""

Keys = Mapping[str, StoredKey]


@dataclass(frozen=True, slots=True)
class Call:
    """One script to run."""

    script: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class PassTime:
    """Time passes, and nothing else happens."""

    ms: int


@dataclass(frozen=True, slots=True)
class ShardState:
    """The content of one shard at one moment.

    `path`: the operations that led here. `now`: unix ms. `keys`: all keys, named as in shard 0. `tokens`: for each
    task, all tokens ever issued. `saved`: the same keys in the form that RESTORE takes.
    """

    path: tuple[str, ...] = ()
    now: int = 0
    keys: Keys = field(default_factory=dict)
    tokens: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    saved: tuple[tuple[str, int, bytes], ...] = ()

    def task(self, name: str) -> Mapping[str, str] | None:
        """The fields of a task; None if there is no such task."""
        kept = self.keys.get(f"queue:{{0}}:task:{name}")
        return kept.value if kept else None

    def members(self, key: str) -> Mapping[str, float]:
        """The members of a sorted set with their scores; empty if there is no such key."""
        kept = self.keys.get(key)
        return kept.value if kept else {}


class _ClockPerShard(Store):
    """A store with a separate clock for each shard."""

    offsets: Sequence[int] = (0,) * AT_ONCE

    def fixed_words(self, shard: int) -> tuple[Word, ...]:
        *words, _ = super().fixed_words(shard)
        return (*words, self.offsets[shard])


class ManyShards:
    """The server on which states are tried. End it with `close`."""

    def __init__(self, store: _ClockPerShard, plain: Redis) -> None:
        self.store = store
        self._plain = plain
        self._restore = plain.register_script(_RESTORE)
        self._serialize = plain.register_script(_SERIALIZE)

    @classmethod
    async def open(cls, server: Server) -> "ManyShards":
        store = await _ClockPerShard.open(server.url, AT_ONCE)
        assert isinstance(store, _ClockPerShard)
        return cls(store, Redis.from_url(server.url, protocol=2, socket_timeout=REPLY))

    async def empty_state(self, options: Mapping[str, str]) -> ShardState:
        """A state without work. `options` of tubes: `<tube>:<option>` → value."""
        await self.load([ShardState()])
        if options:
            await self._plain.hset(KEYS["options"].at(0), items=[word for pair in options.items() for word in pair])
        (state,) = await self.save(list(enumerate(await self.read([ShardState()]))))
        return state

    async def close(self) -> None:
        await self._plain.aclose()
        await self.store.close()

    async def step(self, tries: Sequence[tuple[ShardState, Call | PassTime]]) -> list[tuple[ShardState, Any]]:
        """Runs one step on each state (at most AT_ONCE). Returns the state after it and the reply.

        The new states stay on the server, the nth in shard n, until others are loaded.
        """
        await self.load([_later(state, step) for state, step in tries])
        replies = await self.run([step if isinstance(step, Call) else None for _, step in tries])
        return list(zip(await self.read([state for state, _ in tries]), replies, strict=True))

    async def run(self, calls: Sequence[Call | None]) -> list[Any]:
        """Runs the nth call in the nth loaded state; returns the replies."""
        by_script = defaultdict(list)
        for shard, call in enumerate(calls):
            if call is not None:
                by_script[call.script].append((shard, call.arguments))
        replies: list[Any] = [None] * len(calls)
        for script, shards in by_script.items():
            for (shard, _), reply in zip(shards, await self.store.run_each(script, shards), strict=True):
                if isinstance(reply, Exception):
                    raise reply
                replies[shard] = reply
        return replies

    def pass_time(self, ms: int) -> None:
        """In every loaded state."""
        self.store.offsets = [offset + ms for offset in self.store.offsets]

    async def read(self, states: Sequence[ShardState]) -> list[ShardState]:
        """The loaded states as they are now on the server."""
        by_shard: dict[int, dict[str, StoredKey]] = defaultdict(dict)
        for name, kept in (await dump_through(self._plain)).items():
            shard, home = _split(name)
            by_shard[shard][home] = kept
        now = _real_ms()
        return [
            replace(state, now=now + self.store.offsets[shard], keys=by_shard[shard], saved=())
            for shard, state in enumerate(states)
        ]

    async def load(self, states: Sequence[ShardState]) -> None:
        """Replaces the content of the server with these states, the nth in shard n."""
        await self._plain.flushall()
        now = _real_ms()
        self.store.shards = len(states)
        self.store.offsets = [(state.now or now) - now for state in states]
        words: list[Any] = []
        for shard, state in enumerate(states):
            for name, ttl, payload in state.saved:
                words += [_in_shard(name, shard), ttl, payload]
        if words:
            await self._restore(args=words)

    async def save(self, states: Sequence[tuple[int, ShardState]]) -> list[ShardState]:
        """The states of these shards with their keys serialized, so that they can be loaded again."""
        words = [(shard, name, _in_shard(name, shard)) for shard, state in states for name in _stored_names(state)]
        rows = await self._serialize(args=[name for _, _, name in words]) if words else []
        saved: dict[int, list[tuple[str, int, bytes]]] = defaultdict(list)
        for (shard, name, _), (ttl, payload) in zip(words, rows, strict=True):
            if payload is not None:
                saved[shard].append((name, ttl, payload))
        return [replace(state, saved=tuple(saved[shard])) for shard, state in states]

    async def audit(self, states: Sequence[ShardState]) -> list[Violation]:
        """The violations that `./ada audit` finds in any of them."""
        found: list[Violation] = []
        for start in range(0, len(states), AT_ONCE):
            await self.load(states[start : start + AT_ONCE])
            found += [violation async for violation in _AuditOfAllShards(self.store).find()]
        return found


def _stored_names(state: ShardState) -> Iterator[str]:
    """The keys of a state as they are on the server: what is stored of a task beside its record has keys of its own."""
    yield from state.keys
    yield "queue:{0}:taken"
    for name in state.keys:
        if ":task:" in name:
            yield name.replace(":task:", ":progress:")


class _AuditOfAllShards(Audit):
    """The audit with the same invariants, of every shard at once; no worker may be running."""

    async def _find(self) -> AsyncIterator[Violation]:
        names: dict[int, list[str]] = defaultdict(list)
        for name in await self._store.command("KEYS", "*"):
            names[shard_of(name)].append(name)
        for found in await asyncio.gather(*(self._shard(scanner, names[scanner.shard]) for scanner in self._scanners)):
            for violation in found:
                yield violation

    async def _shard(self, scanner: Scanner, names: list[str]) -> list[Violation]:
        counts = await self._counts(scanner.shard)
        found = [violation async for violation in self._events(scanner)]
        found += [violation async for violation in scanner.page(names, scanner.shard)] if names else []
        found += [violation async for violation in scanner.duplicate_numbers()]
        return [*found, *self._conservation(scanner, counts, counts)]


def _real_ms() -> int:
    return time.time_ns() // 1_000_000


def _later(state: ShardState, step: Call | PassTime) -> ShardState:
    return replace(state, now=(state.now or _real_ms()) + step.ms) if isinstance(step, PassTime) else state


def _in_shard(name: str, shard: int) -> str:
    return name.replace("{0}", f"{{{shard}}}", 1)


def shard_of(name: str) -> int:
    """The shard of a key."""
    return _split(name)[0]


def _split(name: str) -> tuple[int, str]:
    """The shard of a key, and its name in shard 0."""
    before, _, rest = name.partition("{")
    shard, _, after = rest.partition("}")
    return int(shard), f"{before}{{0}}{after}"
