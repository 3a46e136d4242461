"""What the server says of itself: how long each script held it, how many keys and bytes it has."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from redis.asyncio import Redis

from bench.harness.rows import median, percentile
from cli.command import NotDone
from core.redis import scripts
from core.redis.keys import KEYS

_KEPT = 100_000
NOTED_US = 200
"""What is shorter is not looked at where only the longest counts."""

_LOOK = 0.005


@dataclass(slots=True)
class Timings:
    """µs of each run in the server, by script; there when the measuring is over."""

    by_script: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def of(self, script: str) -> Sequence[int]:
        return self.by_script[script]

    @property
    def longest_ms(self) -> float:
        return max((max(runs) for runs in self.by_script.values()), default=0) / 1000

    @property
    def median_ms(self) -> float:
        """Beside the longest it tells what was the machine's, not the script's."""
        return median([run for runs in self.by_script.values() for run in runs] or [0]) / 1000


@asynccontextmanager
async def timed(redis: Redis, above_us: int = 0) -> AsyncIterator[Timings]:
    """Every script that runs meanwhile, for `above_us` at least, by the server's own slow log."""
    told = Timings()
    await redis.config_set("slowlog-max-len", _KEPT)
    await redis.slowlog_reset()
    await redis.config_set("slowlog-log-slower-than", above_us)
    yield told
    await redis.config_set("slowlog-log-slower-than", -1)
    names = {scripts.load(name, flags=True).sha: name for name in scripts.names()}
    for entry in await redis.slowlog_get(_KEPT):
        verb, _, rest = _text(entry["command"]).partition(" ")
        if verb.upper() == "EVALSHA":
            told.by_script[names.get(rest[:40], "another")].append(entry["duration"])
    await redis.slowlog_reset()


def _text(command: bytes | str) -> str:
    return command.decode(errors="replace") if isinstance(command, bytes) else command


@dataclass(frozen=True, slots=True)
class Contents:
    """How many keys, and all bytes the server has asked for."""

    keys: int
    bytes: int


async def contents(redis: Redis) -> Contents:
    return Contents(await redis.dbsize(), (await redis.info("memory"))["used_memory"])


async def counted(redis: Redis, tube: str, transition: str) -> int:
    """How many tasks of a tube have made a transition since the beginning."""
    return int(await redis.hget(KEYS["counters"].at(0), f"{tube}:{transition}") or 0)


async def until(holds: Callable[[], Awaitable[bool]], within: float, what: str) -> float:
    """Looks often; answers the moment (Unix ms) at which it was seen. Raises NotDone."""
    deadline = time.monotonic() + within
    while not await holds():
        if time.monotonic() > deadline:
            raise NotDone(f"{what} did not happen within {within:.0f} s")
        await asyncio.sleep(_LOOK)
    return time.time() * 1000


def spread(name: str, values: Sequence[float]) -> Mapping[str, float | None]:
    """The three figures that tell a latency, in ms."""
    shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {f"{name}_{of}_ms": round(percentile(values, at), 2) if values else None for of, at in shares.items()}
