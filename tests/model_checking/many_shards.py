"""Worlds: many small queues side by side on one server, each in a shard of its own with a clock of its own.

    World ─▶ Ground.step(world, call) for hundreds at once ─▶ World ─▶ …

A world is what the server keeps of it (every key with its end, as DUMP tells it) and the moment it stands at, so any
script can be tried on the same world again and again: what follows differs by the script alone.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redis.asyncio import Redis

from core.audit.audit import Audit
from core.audit.invariant import Violation
from core.audit.scanner import Scanner
from core.redis.keys import KEYS
from core.redis.pipeline import Word
from core.redis.store import Argument, Store
from tests.support.audited import Kept, dump_through
from tests.support.servers import Server

HOUR_MS = 3_600_000
AT_ONCE = 300
"""Worlds on the server at a time: KEYS of all of them is one short command."""

_RESTORE = "for n = 1, #ARGV, 3 do redis.call('RESTORE', ARGV[n], ARGV[n + 1], ARGV[n + 2]) end"
_SERIALIZE = """
local found = {}
for n, key in ipairs(ARGV) do found[n] = { math.max(redis.call('PTTL', key), 0), redis.call('DUMP', key) } end
return found
"""

Keys = Mapping[str, Kept]


@dataclass(frozen=True, slots=True)
class Call:
    """One script to be run."""

    script: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Pass:
    """Time, and nothing else."""

    ms: int


@dataclass(frozen=True, slots=True)
class World:
    """`path`: the moves that led here. `now`: its ms. `keys`: what is there, every name as of shard 0. `tokens`: by
    task, all that were ever given. `saved`: the same keys as the server restores them.
    """

    path: tuple[str, ...] = ()
    now: int = 0
    keys: Keys = field(default_factory=dict)
    tokens: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    saved: tuple[tuple[str, int, bytes], ...] = ()

    def task(self, name: str) -> Mapping[str, str] | None:
        """The facts of a task; None if there is none."""
        kept = self.keys.get(f"queue:{{0}}:task:{name}")
        return kept.value if kept else None

    def members(self, key: str) -> Mapping[str, float]:
        """A sorted set, or nothing."""
        kept = self.keys.get(key)
        return kept.value if kept else {}


class _Clocks(Store):
    """A store that has a clock for each shard."""

    offsets: Sequence[int] = ()

    def _rest(self, shard: int, arguments: Sequence[Word]) -> tuple[Word, ...]:
        anchor, key, tag, _, *rest = super()._rest(shard, arguments)
        return (anchor, key, tag, self.offsets[shard], *rest)


class Ground:
    """The server on which worlds are tried. Close it with `close`."""

    def __init__(self, store: _Clocks, plain: Redis) -> None:
        self.store = store
        self._plain = plain
        self._restore = plain.register_script(_RESTORE)
        self._serialize = plain.register_script(_SERIALIZE)

    @classmethod
    async def open(cls, server: Server) -> "Ground":
        store = await _Clocks.open(server.url, AT_ONCE)
        assert isinstance(store, _Clocks)
        return cls(store, Redis.from_url(server.url, protocol=2))

    async def nothing(self, options: Mapping[str, str]) -> World:
        """A world without work. `options` of tubes: `<tube>:<option>` → value."""
        await self.build([World()])
        if options:
            await self._plain.hset(KEYS["options"].at(0), items=[word for pair in options.items() for word in pair])
        (world,) = await self.save(list(enumerate(await self.look([World()]))))
        return world

    async def close(self) -> None:
        await self._plain.aclose()
        await self.store.close()

    async def step(self, tried: Sequence[tuple[World, Call | Pass]]) -> list[tuple[World, Any]]:
        """What becomes of each world (at most AT_ONCE) by its step, and the reply. They stay on the server, the nth in
        shard n, until others are built.
        """
        await self.build([_later(world, step) for world, step in tried])
        replies = await self.run([step if isinstance(step, Call) else None for _, step in tried])
        return list(zip(await self.look([world for world, _ in tried]), replies, strict=True))

    async def run(self, calls: Sequence[Call | None]) -> list[Any]:
        """The nth in the nth world that is built; the replies."""
        by_script = defaultdict(list)
        for shard, call in enumerate(calls):
            if call is not None:
                by_script[call.script].append((shard, call.arguments))
        replies: list[Any] = [None] * len(calls)
        for script, called in by_script.items():
            for (shard, _), reply in zip(called, await self.store.run_each(script, called), strict=True):
                if isinstance(reply, Exception):
                    raise reply
                replies[shard] = reply
        return replies

    def pass_time(self, ms: int) -> None:
        """In every world that is built."""
        self.store.offsets = [offset + ms for offset in self.store.offsets]

    async def look(self, worlds: Sequence[World]) -> list[World]:
        """The worlds that are built as they are now."""
        there: dict[int, dict[str, Kept]] = defaultdict(dict)
        for name, kept in (await dump_through(self._plain)).items():
            shard, home = _home(name)
            there[shard][home] = kept
        at = _real_ms()
        return [
            replace(world, now=at + self.store.offsets[shard], keys=there[shard], saved=())
            for shard, world in enumerate(worlds)
        ]

    async def build(self, worlds: Sequence[World]) -> None:
        """These worlds, the nth in shard n, and nothing else."""
        await self._plain.flushall()
        moment = _real_ms()
        self.store.shards = len(worlds)
        self.store.offsets = [(world.now or moment) - moment for world in worlds]
        words: list[Any] = []
        for shard, world in enumerate(worlds):
            for name, ttl, payload in world.saved:
                words += [_moved(name, shard), ttl, payload]
        if words:
            await self._restore(args=words)

    async def save(self, worlds: Sequence[tuple[int, World]]) -> list[World]:
        """The worlds of these shards, as they stand on the server, so that they can be built again."""
        words = [(shard, name, _moved(name, shard)) for shard, world in worlds for name in world.keys]
        rows = await self._serialize(args=[where for _, _, where in words]) if words else []
        saved: dict[int, list[tuple[str, int, bytes]]] = defaultdict(list)
        for (shard, name, _), (ttl, payload) in zip(words, rows, strict=True):
            if payload is not None:
                saved[shard].append((name, ttl, payload))
        return [replace(world, saved=tuple(saved[shard])) for shard, world in worlds]

    async def audit(self, worlds: Sequence[World]) -> list[Violation]:
        """What `./ada audit` finds broken in any of them."""
        found: list[Violation] = []
        for start in range(0, len(worlds), AT_ONCE):
            await self.build(worlds[start : start + AT_ONCE])
            found += [violation async for violation in _SideBySide(self.store).find()]
        return found


class _SideBySide(Audit):
    """The audit of worlds nobody works in: every shard at once, by the same laws."""

    async def _find(self) -> AsyncIterator[Violation]:
        names: dict[int, list[str]] = defaultdict(list)
        for name in await self._store.command("KEYS", "*"):
            names[shard_of(name)].append(name)
        for found in await asyncio.gather(*(self._shard(walk, names[walk.shard]) for walk in self._walks)):
            for violation in found:
                yield violation

    async def _shard(self, walk: Scanner, names: list[str]) -> list[Violation]:
        counts = await self._counts(walk.shard)
        found = [violation async for violation in self._events(walk)]
        found += [violation async for violation in walk.page(names)] if names else []
        found += [violation async for violation in walk.doubles()]
        return [*found, *self._conservation(walk, counts, counts)]


def _real_ms() -> int:
    return time.time_ns() // 1_000_000


def _later(world: World, step: Call | Pass) -> World:
    return replace(world, now=(world.now or _real_ms()) + step.ms) if isinstance(step, Pass) else world


def _moved(name: str, shard: int) -> str:
    return name.replace("{0}", f"{{{shard}}}", 1)


def shard_of(name: str) -> int:
    """In which shard a key is."""
    return _home(name)[0]


def _home(name: str) -> tuple[int, str]:
    before, _, rest = name.partition("{")
    shard, _, after = rest.partition("}")
    return int(shard), f"{before}{{0}}{after}"
