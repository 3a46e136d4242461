"""One process of a benchmark.

What it announces (`cli.processes.supervisor.announce`) is read as facts; its last other lines are kept for the error
message. The process ends when this one ends, even after kill -9.
"""

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cli.command import CommandFailed
from cli.processes.die_with_parent import die_with_parent
from cli.processes.supervisor import MAX_LINE_BYTES, Announcement, read_announcement, send_signal

ROOT = Path(__file__).resolve().parents[2]
_STOP_TIMEOUT = 15.0
_LINES_KEPT = 40

ParseLine = Callable[[str], Announcement | None]
"""The facts in a line of output, or None for an ordinary line."""


def python(module: str, *args: str) -> list[str]:
    """Return the command that runs a module of this project."""
    return [sys.executable, "-P", "-m", module, *args]


def clean_environment(further: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of this process without ADA_ settings, and with `further`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), **further}


class ChildProcess:
    """A running process. Made by `ChildProcess.start`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, parse_line: ParseLine) -> None:
        self.name = name
        self._process = process
        self._parse_line = parse_line
        self._facts: asyncio.Queue[Announcement | None] = asyncio.Queue()
        self._last_lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._reading = asyncio.create_task(self._read_output())

    @classmethod
    async def start(
        cls,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        parse_line: ParseLine = read_announcement,
    ) -> "ChildProcess":
        process = await asyncio.create_subprocess_exec(
            *die_with_parent(command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=clean_environment(environment),
            cwd=directory,
            start_new_session=True,
            limit=MAX_LINE_BYTES,
        )
        return cls(name, process, parse_line)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def facts(self, timeout: float) -> Announcement:
        """Returns the next announcement. Raises CommandFailed if the process ends first, or after `timeout` s."""
        try:
            facts = await asyncio.wait_for(self._facts.get(), timeout)
        except TimeoutError:
            raise CommandFailed(f"{self.name} announced nothing for {timeout:.0f} s{self._output()}") from None
        if facts is None:
            raise CommandFailed(f"{self.name} ended{self._output()}")
        return facts

    def _output(self) -> str:
        return "".join(f"\n  {line}" for line in self._last_lines)

    async def _read_output(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            text = line.decode(errors="replace").rstrip()
            facts = self._parse_line(text)
            if facts is None:
                self._last_lines.append(text)
            else:
                self._facts.put_nowait(facts)
        self._facts.put_nowait(None)

    async def stop(self) -> None:
        """Sends SIGTERM, and SIGKILL if the process does not end in time. Safe to repeat."""
        send_signal(self._process, signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_TIMEOUT)
        except TimeoutError:
            await self.kill()
        await self._reading

    async def kill(self) -> None:
        """Sends SIGKILL; returns when the process has ended."""
        send_signal(self._process, signal.SIGKILL)
        await self._process.wait()
