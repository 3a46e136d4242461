"""One process of a benchmark. What it announces (`cli.processes.supervisor.announce`) comes as facts; its other lines
are kept for
the case that it fails. It ends with us, however we end.
"""

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cli.command import NotDone
from cli.processes.die_with_parent import tethered
from cli.processes.supervisor import LINE, Facts, read_announcement, signalled

_ROOT = Path(__file__).resolve().parents[2]
_GRACE = 15.0
_LINES_KEPT = 40

Hear = Callable[[str], Facts | None]
"""What a line of output tells; None: it is an ordinary one."""


def python(module: str, *words: str) -> list[str]:
    """The command that runs a module of ours."""
    return [sys.executable, "-P", "-m", module, *words]


def clean_environment(further: Mapping[str, str]) -> dict[str, str]:
    """Ours without settings of the user's own installation, and with `further`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(_ROOT), **further}


class Child:
    """A running process. Made by `Child.start`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, hear: Hear) -> None:
        self.name = name
        self._process = process
        self._hear = hear
        self._facts: asyncio.Queue[Facts | None] = asyncio.Queue()
        self._said: deque[str] = deque(maxlen=_LINES_KEPT)
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        hear: Hear = read_announcement,
    ) -> "Child":
        process = await asyncio.create_subprocess_exec(
            *tethered(command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=clean_environment(environment),
            cwd=directory,
            start_new_session=True,
            limit=LINE,
        )
        return cls(name, process, hear)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def facts(self, within: float) -> Facts:
        """What it announces next. Raises NotDone when it ends before, or keeps silent for `within` seconds."""
        try:
            facts = await asyncio.wait_for(self._facts.get(), within)
        except TimeoutError:
            raise NotDone(f"{self.name} said nothing for {within:.0f} s{self._last_words()}") from None
        if facts is None:
            raise NotDone(f"{self.name} ended{self._last_words()}")
        return facts

    def _last_words(self) -> str:
        return "".join(f"\n  {line}" for line in self._said)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            text = line.decode(errors="replace").rstrip()
            facts = self._hear(text)
            if facts is None:
                self._said.append(text)
            else:
                self._facts.put_nowait(facts)
        self._facts.put_nowait(None)

    async def stop(self) -> None:
        """Asks it to end, and ends it by force if it does not. Safe to repeat."""
        signalled(self._process, signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), _GRACE)
        except TimeoutError:
            signalled(self._process, signal.SIGKILL)
            await self._process.wait()
        await self._reading
