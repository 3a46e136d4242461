"""What a benchmark reads: the server's own figures, and the CPU seconds of processes.

Counts and CPU seconds only grow; a benchmark takes differences.
"""

import asyncio
import os
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

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


async def server_cpu_seconds(redis: Redis) -> float:
    """Return the CPU seconds that the server has used so far, without its children."""
    facts = await redis.info("cpu")
    return float(facts["used_cpu_sys"]) + float(facts["used_cpu_user"])


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


_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """One process: its parent, the CPU seconds it has used, its command line."""

    parent: int
    seconds: float
    command: str


def process_usage() -> Mapping[int, ProcessUsage]:
    """Returns all processes of this machine, from /proc, or from ps where there is no /proc (macOS)."""
    return _from_proc() if (_PROC / "self/stat").exists() else _from_ps()


def _from_proc() -> Mapping[int, ProcessUsage]:
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for directory in _PROC.glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
            command = (directory / "cmdline").read_text().replace("\0", " ").strip()
        except OSError:  # the process ended meanwhile
            continue
        found[int(directory.name)] = ProcessUsage(int(fields[1]), (int(fields[11]) + int(fields[12])) / tick, command)
    return found


def _from_ps() -> Mapping[int, ProcessUsage]:
    listing = ["ps", "-A", "-ww", "-o", "pid=,ppid=,time=,args="]
    listed = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    rows = (line.split(maxsplit=3) for line in listed.splitlines())
    return {int(pid): ProcessUsage(int(parent), _seconds(time), command) for pid, parent, time, command in rows}


def _seconds(time: str) -> float:
    """Parses `[[days-]hours:]minutes:seconds`, as ps writes it."""
    days, hours, minutes, seconds = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)??(\d+):([\d.]+)", time).groups("0")  # type: ignore[union-attr]
    return ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(seconds)


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used so far."""
    return process_usage()[pid].seconds


def process_tree(root: int, found: Mapping[int, ProcessUsage]) -> set[int]:
    """Return the ids of a process and all its descendants."""
    members = {root}
    while grown := {pid for pid, process in found.items() if process.parent in members} - members:
        members |= grown
    return members


@dataclass(frozen=True, slots=True)
class CommandCounts:
    """`scripts`: script calls; `executed`: all commands that the server ran, those inside scripts included."""

    scripts: int
    executed: int

    def since(self, before: "CommandCounts") -> "CommandCounts":
        return CommandCounts(self.scripts - before.scripts, self.executed - before.executed)


async def command_counts(redis: Redis) -> CommandCounts:
    """Return the counts since the server started, without those of connections named `bench`."""
    own = sum(int(client["tot-cmds"]) for client in await redis.client_list() if client["name"] == "bench")
    executed = (await redis.info("stats"))["total_commands_processed"]
    evaluated = (await redis.info("commandstats")).get("cmdstat_fcall", {"calls": 0})
    return CommandCounts(evaluated["calls"], executed - own)


async def commands_within(redis: Redis, seconds: float) -> int:
    """Counts the commands that all clients send within `seconds`, without those inside scripts."""
    count = 0
    async with redis.monitor() as monitor:
        try:
            async with asyncio.timeout(seconds):
                async for command in monitor.listen():
                    count += command["client_type"] != "lua"
        except TimeoutError:
            return count
    return count
