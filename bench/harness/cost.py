"""What processes cost: seconds of CPU, and commands of the server. Both count up; who measures takes differences."""

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
class Usage:
    """One process: its parent, the seconds of CPU it has used, its command line."""

    parent: int
    seconds: float
    command: str


def usage() -> Mapping[int, Usage]:
    """All processes of this machine, from /proc, or where there is none (macOS) from ps."""
    return _from_proc() if (_PROC / "self/stat").exists() else _from_ps()


def _from_proc() -> Mapping[int, Usage]:
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for directory in _PROC.glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
            command = (directory / "cmdline").read_text().replace("\0", " ").strip()
        except OSError:  # it ended meanwhile
            continue
        found[int(directory.name)] = Usage(int(fields[1]), (int(fields[11]) + int(fields[12])) / tick, command)
    return found


def _from_ps() -> Mapping[int, Usage]:
    listing = ["ps", "-A", "-ww", "-o", "pid=,ppid=,time=,args="]
    listed = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    rows = (line.split(maxsplit=3) for line in listed.splitlines())
    return {int(pid): Usage(int(parent), _seconds(time), command) for pid, parent, time, command in rows}


def _seconds(time: str) -> float:
    """`[[days-]hours:]minutes:seconds`, as ps writes it."""
    days, hours, minutes, seconds = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)??(\d+):([\d.]+)", time).groups("0")  # type: ignore[union-attr]
    return ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(seconds)


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used so far."""
    return usage()[pid].seconds


def tree(root: int, found: Mapping[int, Usage]) -> set[int]:
    """A process and all that it started."""
    members = {root}
    while grown := {pid for pid, one in found.items() if one.parent in members} - members:
        members |= grown
    return members


@dataclass(frozen=True, slots=True)
class Commands:
    """`scripts`: steps asked for; `executed`: commands run by the server, those inside of scripts included."""

    scripts: int
    executed: int

    def since(self, before: "Commands") -> "Commands":
        return Commands(self.scripts - before.scripts, self.executed - before.executed)


async def commands(redis: Redis) -> Commands:
    """What connections named `bench` executed is the measurer's own and left out."""
    own = sum(int(client["tot-cmds"]) for client in await redis.client_list() if client["name"] == "bench")
    executed = (await redis.info("stats"))["total_commands_processed"]
    evaluated = (await redis.info("commandstats")).get("cmdstat_evalsha", {"calls": 0})
    return Commands(evaluated["calls"], executed - own)


async def asked_within(redis: Redis, seconds: float) -> int:
    """How many commands processes ask for in that time, not counting those inside of scripts."""
    count = 0
    async with redis.monitor() as monitor:
        try:
            async with asyncio.timeout(seconds):
                async for command in monitor.listen():
                    count += command["client_type"] != "lua"
        except TimeoutError:
            return count
    return count
