"""CPU seconds of processes, and commands that the server executed. Both only grow; a benchmark takes differences."""

import asyncio
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from redis.asyncio import Redis

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
