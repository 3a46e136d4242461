"""Reads the server's own figures: how long each script ran, how many keys and bytes it has, how many transitions were
made.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from redis.asyncio import Redis

from bench.harness.report import median, percentile
from cli.command import CommandFailed
from core.redis import library
from core.redis.keys import KEYS

_KEPT = 100_000
LONG_SCRIPT_US = 200
"""Shorter scripts are not recorded where only the longest ones matter."""

_POLL_INTERVAL = 0.005


@dataclass(slots=True)
class ScriptTimings:
    """Run times in µs, by script; those of commands outside scripts, by verb. Filled when the `script_timings` block
    ends.
    """

    by_script: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    by_verb: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def of(self, script: str) -> Sequence[int]:
        return self.by_script[script]

    @property
    def longest_ms(self) -> float:
        return max((max(runs) for runs in self.by_script.values()), default=0) / 1000

    @property
    def median_ms(self) -> float:
        """Compared with the longest it shows which part is the machine's, not the script's."""
        return median([run for runs in self.by_script.values() for run in runs] or [0]) / 1000


@asynccontextmanager
async def script_timings(redis: Redis, above_us: int = 0) -> AsyncIterator[ScriptTimings]:
    """Records every script that runs at least `above_us` within the block, from the server's slow log."""
    timings = ScriptTimings()
    await redis.config_set("slowlog-max-len", _KEPT)
    await redis.slowlog_reset()
    await redis.config_set("slowlog-log-slower-than", above_us)
    yield timings
    await redis.config_set("slowlog-log-slower-than", -1)
    names = {function.registered: name for name, function in library.current().functions.items()}
    for entry in await redis.slowlog_get(_KEPT):
        verb, _, rest = _text(entry["command"]).partition(" ")
        if verb.upper() == "FCALL":
            timings.by_script[names.get(rest.partition(" ")[0], "another")].append(entry["duration"])
        else:
            timings.by_verb[verb.upper()].append(entry["duration"])
    await redis.slowlog_reset()


def _text(command: bytes | str) -> str:
    return command.decode(errors="replace") if isinstance(command, bytes) else command


@dataclass(frozen=True, slots=True)
class ServerSize:
    """The number of keys, and the bytes that the server has allocated."""

    keys: int
    bytes: int


async def server_size(redis: Redis) -> ServerSize:
    return ServerSize(await redis.dbsize(), (await redis.info("memory"))["used_memory"])


async def transition_count(redis: Redis, tube: str, transition: str) -> int:
    """Return how many tasks of a tube have made this transition since the server started."""
    return int(await redis.hget(KEYS["counters"].at(0), f"{tube}:{transition}") or 0)


async def wait_until(is_true: Callable[[], Awaitable[bool]], timeout: float, what: str) -> float:
    """Polls until the condition is true; returns that moment (Unix ms). Raises CommandFailed after `timeout` s."""
    deadline = time.monotonic() + timeout
    while not await is_true():
        if time.monotonic() > deadline:
            raise CommandFailed(f"{what} did not happen within {timeout:.0f} s")
        await asyncio.sleep(_POLL_INTERVAL)
    return time.time() * 1000


def latency_columns(name: str, values: Sequence[float]) -> Mapping[str, float | None]:
    """Return the columns p50, p99 and max of some latencies, in ms."""
    shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {f"{name}_{of}_ms": round(percentile(values, at), 2) if values else None for of, at in shares.items()}
