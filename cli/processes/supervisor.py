"""The supervisor of `./ada up`: starts child processes, restarts them after a crash, stops them in order.

A child process reports that it is ready with one line of its output, which also carries its addresses. A child that
crashes is restarted after a growing delay. A child that exits with OPERATOR_NEEDED or WRONG_USAGE is not restarted,
because a restart would change nothing. Children end with the supervisor, however it ends: `die_with_parent`.
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

from cli.command import OPERATOR_NEEDED, SUCCESS, WRONG_USAGE
from cli.processes.data_directory import PRIVATE_UMASK
from cli.processes.die_with_parent import die_with_parent
from cli.processes.forked_process import ForkedProcess, fork

Process = asyncio.subprocess.Process | ForkedProcess

Announcement = Mapping[str, Any]
"""The report of a child process that is ready, for example its addresses."""

PrintLine = Callable[[str, str], None]
"""Receives the name of a child process and one line of its output."""

READY = "ready "
"""A child of Ada reports that it is ready with a line that begins so; its announcement follows as JSON."""

READY_LINE = "ready"
"""The line that is printed when a child is ready."""

RESTART_DELAYS = (0.5, 1, 2, 5, 10, 30)
"""Seconds before the first, second, … restart after a crash. Later restarts use the last one."""

STABLE_AFTER = 60.0
"""A child that ran this many seconds has recovered: its next crash counts as the first."""

MAX_LINE_BYTES = 2**20
STOP_TIMEOUT = 10.0
"""Seconds that a child has to end after SIGTERM."""


class RestartDelays:
    """The growing pauses before the restarts of one child."""

    def __init__(self) -> None:
        self._crashes = 0

    def after(self, seconds: float) -> float:
        """Return the pause, in seconds, after a run of this length."""
        self._crashes = 0 if seconds > STABLE_AFTER else self._crashes
        delay = RESTART_DELAYS[min(self._crashes, len(RESTART_DELAYS) - 1)]
        self._crashes += 1
        return delay


class ChildFailed(Exception):
    """The child ended for good before it was ready. The message is shown to the user."""


def announce(**facts: Any) -> None:
    """Report that this child process is ready. Called once."""
    print(f"{READY}{json.dumps(facts, ensure_ascii=False)}\n", end="", flush=True)  # one write: threads print, too


def read_announcement(line: str) -> Announcement | None:
    """Return the announcement in a line of a child of Ada; None if it is an ordinary line."""
    if not line.startswith(READY + "{"):
        return None
    announcement: Announcement = json.loads(line.removeprefix(READY))
    return announcement


FINAL_EXIT_CODES = frozenset({SUCCESS, WRONG_USAGE, OPERATOR_NEEDED})
"""Exit codes after which a restart would change nothing."""


@dataclass(frozen=True)
class ChildSpec:
    """The plan of one child process. Children of the highest `stage` are stopped first, those of one stage together.

    `command` is a program with its arguments; with `forked` a Python module with its arguments. It is ready after as
    many `announcements`. `environment` is added to ours; a variable for whose name `may_receive` is false is withheld.
    `pass_fds` are inherited file descriptors. A child that exits with one of `final_exit_codes` is not restarted, nor
    is a `needed` child that ends before it was ready once. Lines for which `is_shown` is false are dropped.
    """

    name: str
    command: tuple[str, ...]
    stage: int
    environment: Mapping[str, str] = field(default_factory=dict)
    parse_ready: Callable[[str], Announcement | None] = read_announcement
    pass_fds: tuple[int, ...] = ()
    final_exit_codes: frozenset[int] = FINAL_EXIT_CODES
    is_shown: Callable[[str], bool] = bool
    may_receive: Callable[[str], bool] = bool
    needed: bool = False
    forked: bool = False
    announcements: int = 1

    def whole_environment(self) -> dict[str, str]:
        found = {**os.environ, "PYTHONUNBUFFERED": "1", **self.environment}
        return {name: value for name, value in found.items() if self.may_receive(name)}


async def start_process(spec: ChildSpec) -> Process:
    if spec.forked:
        return await fork(spec.command, spec.whole_environment(), MAX_LINE_BYTES)
    return await asyncio.create_subprocess_exec(
        *die_with_parent(spec.command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=spec.whole_environment(),
        umask=PRIVATE_UMASK,
        pass_fds=spec.pass_fds,
        start_new_session=True,
        limit=MAX_LINE_BYTES,
    )


class SupervisedChild:
    """Runs one child process, again and again, until `stop`."""

    def __init__(self, spec: ChildSpec, print_line: PrintLine, stop_timeout: float) -> None:
        self.spec = spec
        self.ready: asyncio.Future[Announcement] = asyncio.get_running_loop().create_future()
        self._print_line = print_line
        self._stop_timeout = stop_timeout
        self._process: Process | None = None
        self._is_stopping = False
        self._announcements = 0
        self._last_line = ""
        self._task = asyncio.create_task(self._run())

    @property
    def has_ended(self) -> bool:
        return self._task.done()

    async def _run(self) -> None:
        delays = RestartDelays()
        while True:
            started = time.monotonic()
            code = await self._run_once()
            if self._is_final(code):
                return
            delay = delays.after(time.monotonic() - started)
            self._print(f"ended ({describe_exit(code)}), restarts in {delay} s")
            await asyncio.sleep(delay)

    async def _run_once(self) -> int:
        """Run one process to its end; return its exit code."""
        self._announcements = 0
        process = self._process = await start_process(self.spec)
        await self._read_lines(process)
        return await process.wait()  # asyncio closes the pipe that die_with_parent needs

    async def _read_lines(self, process: Process) -> None:
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # longer than MAX_LINE_BYTES; the part that was read is lost
                continue
            if not line:
                return
            self._handle_line(line.decode(errors="replace").rstrip())

    def _handle_line(self, line: str) -> None:
        announcement = self.spec.parse_ready(line)
        if announcement is None:
            if self.spec.is_shown(line):
                self._last_line = line
                self._print(line)
            return
        self._announcements += 1
        if self._announcements != self.spec.announcements:  # Valkey reports once for each socket
            return
        self._print(READY_LINE)
        if not self.ready.done():
            self.ready.set_result(announcement)

    def _is_final(self, code: int) -> bool:
        """Return whether the child is not restarted. If it never was ready, `ready` raises ChildFailed."""
        if self._is_stopping:
            return True
        is_first = not self.ready.done()
        if code not in self.spec.final_exit_codes and not (self.spec.needed and is_first):
            return False
        message = f"stopped for good ({describe_exit(code)})"
        self._print(message)
        if is_first:
            reason = f": {self._last_line.removeprefix('ada: ')}" if self._last_line else ""
            self.ready.set_exception(ChildFailed(f"{self.spec.name} {message}{reason}"))
            self.ready.exception()  # marks it as read: not every caller awaits `ready`
        return True

    def kill(self) -> None:
        """Kill the process and what it has started. It runs again after a moment."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Send SIGTERM, wait, and send SIGKILL after the timeout. Safe to repeat."""
        self._is_stopping = True
        if self._process is None or self._process.returncode is not None:
            self._task.cancel()  # it waits for the next restart
        else:
            send_signal(self._process, signal.SIGTERM)
        _, unfinished = await asyncio.wait([self._task], timeout=self._stop_timeout)
        if unfinished and self._process is not None:
            self._print(f"did not end within {self._stop_timeout:g} s, killed")
            send_signal(self._process, signal.SIGKILL)
            await asyncio.wait([self._task])

    def _print(self, line: str) -> None:
        self._print_line(self.spec.name, line)


class Supervisor:
    """All child processes of one `./ada up`."""

    def __init__(self, print_line: PrintLine, stop_timeout: float = STOP_TIMEOUT) -> None:
        self._print_line = print_line
        self._stop_timeout = stop_timeout
        self._children: list[SupervisedChild] = []

    def start(self, spec: ChildSpec) -> asyncio.Future[Announcement]:
        """Start a child and keep it running. The future has its announcement, or raises ChildFailed."""
        child = SupervisedChild(spec, self._print_line, self._stop_timeout)
        self._children.append(child)
        return child.ready

    def has_ended(self, name: str) -> bool:
        return any(child.has_ended for child in self._children if child.spec.name == name)

    def kill(self, name: str) -> None:
        """Kill a child with all its processes (SIGKILL). It is restarted."""
        for child in self._children:
            if child.spec.name == name:
                child.kill()

    async def stop(self) -> None:
        """Stop the children, highest stage first; return when the last one has ended."""
        for stage in sorted({child.spec.stage for child in self._children}, reverse=True):
            await asyncio.gather(*(child.stop() for child in self._children if child.spec.stage == stage))


def describe_exit(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def send_signal(process: Process, number: signal.Signals) -> None:
    """Send a signal, unless the process has ended."""
    with suppress(ProcessLookupError):
        process.send_signal(number)
