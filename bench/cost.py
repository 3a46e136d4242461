"""What processes cost: seconds of CPU, and commands asked of the server. Both count up; who measures takes differences."""

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
    """One process: its parent and the seconds of CPU it has used."""

    parent: int
    seconds: float


def usage() -> Mapping[int, Usage]:
    """All processes of this machine, from /proc, or where there is none (macOS) from ps."""
    return _from_proc() if (_PROC / "self/stat").exists() else _from_ps()


def _from_proc() -> Mapping[int, Usage]:
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for directory in _PROC.glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        found[int(directory.name)] = Usage(int(fields[1]), (int(fields[11]) + int(fields[12])) / tick)
    return found


def _from_ps() -> Mapping[int, Usage]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,time="], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in listed.splitlines())
    return {int(pid): Usage(int(parent), _seconds(time)) for pid, parent, time in rows}


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
    """`asked`: sent by the processes that are measured; `executed`: run by the server, those inside of scripts included."""

    asked: int
    executed: int

    def since(self, before: "Commands") -> "Commands":
        return Commands(self.asked - before.asked, self.executed - before.executed)


async def commands(redis: Redis) -> Commands:
    """Connections named `bench` are the measurer's own and left out, as far as what they asked themselves goes."""
    clients = await redis.client_list()
    own = sum(int(client["tot-cmds"]) for client in clients if client["name"] == "bench")
    everybody = sum(int(client["tot-cmds"]) for client in clients)
    executed = (await redis.info("stats"))["total_commands_processed"]
    return Commands(everybody - own, executed - own)
