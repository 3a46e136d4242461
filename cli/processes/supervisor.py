"""The supervisor of `./ada up`: starts parts as child processes, keeps them running, ends them in order.

A part says that it is ready with a line of its output; what it tells there (addresses) goes to whoever started it.
A part that crashes is started again after a growing pause; one that ends with FOR_THE_OPERATOR or WRONG_USAGE is not,
since starting it again would change nothing. Children end with us, however we end (`cli.processes.die_with_parent`).
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cli.command import FOR_THE_OPERATOR, GOOD, WRONG_USAGE
from cli.processes.die_with_parent import tethered

Facts = Mapping[str, Any]
Say = Callable[[str, str], None]

READY = "ready "
"""How a part of ours begins the line by which it says that it is ready; facts follow as JSON."""

PAUSES = (0.5, 1, 2, 5, 10, 30)
"""Seconds before the first, second, … start after a crash; the last one is kept."""

LONG_LIFE = 60.0
"""A part that lived so many seconds has recovered: its next crash is its first."""

LINE = 2**20
GRACE = 10.0
"""Seconds a part has to end after it was asked to."""


class PartEnded(Exception):
    """The part ended for good before it was ready; the argument is the sentence for the user."""


def announce(**facts: Any) -> None:
    """Said by a part, once, when it can be used."""
    print(f"{READY}{json.dumps(facts, ensure_ascii=False)}", flush=True)


def read_announcement(line: str) -> Facts | None:
    """The facts of a part of ours, None if the line is an ordinary one."""
    if not line.startswith(READY + "{"):
        return None
    facts: Facts = json.loads(line.removeprefix(READY))
    return facts


@dataclass(frozen=True)
class Part:
    """One child process. `rank` gives the order of the end: higher ones first, equal ones together.

    `final` are the exit codes after which it is not started again.
    """

    name: str
    command: tuple[str, ...]
    rank: int
    environment: Mapping[str, str] = field(default_factory=dict)
    is_ready: Callable[[str], Facts | None] = read_announcement
    inherited: tuple[int, ...] = ()
    final: frozenset[int] = frozenset({GOOD, WRONG_USAGE, FOR_THE_OPERATOR})
    is_worth_saying: Callable[[str], bool] = bool


class Keeper:
    """Keeps one part running from `start` to `stop`."""

    def __init__(self, part: Part, say: Say, grace: float) -> None:
        self.part = part
        self._grace = grace
        self.ready: asyncio.Future[Facts] = asyncio.get_running_loop().create_future()
        self._say = say
        self._process: asyncio.subprocess.Process | None = None
        self._is_stopping = False
        self._task = asyncio.create_task(self._keep())

    @property
    def has_ended(self) -> bool:
        return self._task.done()

    async def _keep(self) -> None:
        crashes = 0
        while True:
            began = time.monotonic()
            code = await self._run_once()
            if self._is_over(code):
                return
            crashes = 0 if time.monotonic() - began > LONG_LIFE else crashes
            pause = PAUSES[min(crashes, len(PAUSES) - 1)]
            crashes += 1
            self._say(self.part.name, f"ended ({described(code)}), starts again in {pause} s")
            await asyncio.sleep(pause)

    async def _run_once(self) -> int:
        """From the start to the end of one process; its exit code."""
        process = self._process = await asyncio.create_subprocess_exec(
            *tethered(self.part.command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self.part.environment},
            pass_fds=self.part.inherited,
            start_new_session=True,
            limit=LINE,
        )
        await self._pass_on_lines(process)
        return await process.wait()  # asyncio closes the pipe of the tether

    async def _pass_on_lines(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # longer than LINE; what was read of it is gone
                continue
            if not line:
                return
            self._hear(line.decode(errors="replace").rstrip())

    def _hear(self, line: str) -> None:
        facts = self.part.is_ready(line)
        if facts is None:
            if self.part.is_worth_saying(line):
                self._say(self.part.name, line)
            return
        self._say(self.part.name, "ready")
        if not self.ready.done():
            self.ready.set_result(facts)

    def _is_over(self, code: int) -> bool:
        """Whether it was to end, or to start it again makes no sense; then whoever waits for it is told."""
        if self._is_stopping:
            return True
        if code not in self.part.final:
            return False
        sentence = f"stopped for good ({described(code)})"
        self._say(self.part.name, sentence)
        if not self.ready.done():
            self.ready.set_exception(PartEnded(f"{self.part.name} {sentence}"))
            self.ready.exception()  # not everybody waits
        return True

    async def stop(self) -> None:
        """Asks it to end, waits, ends it by force after the grace time. Safe to repeat."""
        self._is_stopping = True
        if self._process is None or self._process.returncode is not None:
            self._task.cancel()  # between two starts
        else:
            signalled(self._process, signal.SIGTERM)
        _, unfinished = await asyncio.wait([self._task], timeout=self._grace)
        if unfinished and self._process is not None:
            self._say(self.part.name, f"did not end within {self._grace:g} s, ended by force")
            signalled(self._process, signal.SIGKILL)
            await asyncio.wait([self._task])


class Supervisor:
    """All parts of one `up`."""

    def __init__(self, say: Say, grace: float = GRACE) -> None:
        self._say = say
        self._grace = grace
        self._keepers: list[Keeper] = []

    def start(self, part: Part) -> asyncio.Future[Facts]:
        """Starts a part and keeps it running; await the future for its being ready. The future raises PartEnded."""
        keeper = Keeper(part, self._say, self._grace)
        self._keepers.append(keeper)
        return keeper.ready

    def has_ended(self, name: str) -> bool:
        return any(keeper.has_ended for keeper in self._keepers if keeper.part.name == name)

    async def stop(self) -> None:
        """Ends the parts, highest rank first; comes back when the last one is gone."""
        for rank in sorted({keeper.part.rank for keeper in self._keepers}, reverse=True):
            await asyncio.gather(*(keeper.stop() for keeper in self._keepers if keeper.part.rank == rank))


def described(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def signalled(process: asyncio.subprocess.Process, how: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(how)
