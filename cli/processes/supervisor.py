"""The supervisor of `./ada up`: starts child processes, restarts them after a crash, stops them in order.

A child process reports that it is ready with one line of its output, which also carries its addresses. A child that
ends is restarted after a growing delay, also if somebody has terminated it. A child that exits with OPERATOR_NEEDED or
WRONG_USAGE is not restarted, because a restart would change nothing. Children end with the supervisor, however it ends:
`die_with_parent`. How each does: `parts`.
"""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cli.command import FAILURE, OPERATOR_NEEDED, WRONG_USAGE
from cli.processes.data_directory import PRIVATE_UMASK
from cli.processes.die_with_parent import die_with_parent
from cli.processes.forked_process import LOST, ForkedProcess, fork
from cli.processes.parts import OWN_THREAD, UP_PART, PartTracker
from core.model.parts import PartState, UpPart

Process = asyncio.subprocess.Process | ForkedProcess

Announcement = Mapping[str, Any]
"""The report of a child process that is ready, for example its addresses."""

PrintLine = Callable[[str, str], None]
"""Receives the name of a child process and one line of its output."""

READY = "ready "
"""A child of Ada reports that it is ready with a line that begins so; its announcement follows as JSON."""

READY_LINE = "ready"
"""The line that is printed when a child is ready."""

PART = "part "
"""A child of several parts reports how one of them does with a line that begins so; the part follows as JSON."""

FORK_SERVER_ENDED = "killed, because the process that forks it has ended"

MAX_LINE_BYTES = 2**20
STOP_TIMEOUT = 10.0
"""Seconds that a child has to end after SIGTERM."""


class ProcessFailed(Exception):
    """The child ended for good before it was ready. The message is shown to the user."""


def announce(**facts: Any) -> None:
    """Report that this child process, or this part of it, is ready. Called once."""
    if part := OWN_THREAD.get():
        part.is_ready()
        report_part(part.part)
    print(f"{READY}{json.dumps(facts, ensure_ascii=False)}\n", end="", flush=True)  # one write: threads print, too


def report_part(part: UpPart) -> None:
    """Report how a part of this child process does."""
    print(f"{PART}{msgspec.json.encode(part).decode()}\n", end="", flush=True)


def read_announcement(line: str) -> Announcement | None:
    """Return the announcement in a line of a child of Ada; None if it is an ordinary line."""
    if not line.startswith(READY + "{"):
        return None
    announcement: Announcement = json.loads(line.removeprefix(READY))
    return announcement


ASKED_BEFORE_THE_END = 120.0
"""Seconds: a process notes that it is halted and ends later; a start asked for between is carried out at its end."""

FINAL_EXIT_CODES = frozenset({WRONG_USAGE, OPERATOR_NEEDED})
"""Exit codes after which a restart would change nothing. 0 is none of them: somebody may have terminated the child."""


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
        found = {**os.environ, "PYTHONUNBUFFERED": "1", UP_PART: self.name, **self.environment}
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
        self._tracker = PartTracker(spec.name)
        self._threads: dict[str, UpPart] = {}
        self._print_line = print_line
        self._stop_timeout = stop_timeout
        self._process: Process | None = None
        self._is_stopping = False
        self._is_running = False
        self._announcements = 0
        self._last_line = ""
        self._again = asyncio.Event()
        self._asked: dict[str, float] = {}  # verb → when an operator asked for its start
        self._task = asyncio.create_task(self._run())

    @property
    def has_ended(self) -> bool:
        return self._task.done()

    @property
    def parts(self) -> Sequence[UpPart]:
        """Return how the child does, and while it runs how its threads do."""
        return [self._tracker.part, *self._threads.values()]

    async def _run(self) -> None:
        while not self._is_stopping:
            try:
                code = await self._run_once()
            except (
                OSError,
                EOFError,
            ) as fault:  # there are too many processes, or the fork server was killed meanwhile
                self._handle_line(f"it could not be started: {fault!r}")
                code = FAILURE
            if self._is_final(code):
                return
            delay = self._tracker.ends(self._end_of(code))
            self._print(f"ended ({self._exit_of(code)}), restarts in {delay} s")
            self._again.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._again.wait()

    async def _run_once(self) -> int:
        """Run one process to its end; return its exit code."""
        self._announcements, self._last_line = 0, ""
        self._tracker.starts()
        process = self._process = await start_process(self.spec)
        self._is_running = True
        try:
            await self._read_lines(process)
            return await process.wait()  # asyncio closes the pipe that die_with_parent needs
        finally:
            self._is_running = False
            self._threads.clear()

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
        if line.startswith(PART + "{"):
            self._note_thread(msgspec.json.decode(line.removeprefix(PART), type=UpPart))
            return
        announcement = self.spec.parse_ready(line)
        if announcement is None:
            if self.spec.is_shown(line):
                self._last_line = line
                self._print(line)
            return
        self._announcements += 1
        if self._announcements != self.spec.announcements:  # Valkey reports once for each socket
            return
        self._tracker.is_ready()
        self._print(READY_LINE)
        if not self.ready.done():
            self.ready.set_result(announcement)

    def _note_thread(self, part: UpPart) -> None:
        """Note how a thread does. The process works as soon as one reports: each is late for itself."""
        self._threads[part.name] = part
        self._begin_anew_for(part)
        if self._tracker.part.state is PartState.STARTING:
            self._tracker.is_ready()

    def _is_final(self, code: int) -> bool:
        """Return whether the child is not restarted. If it never was ready, `ready` raises ChildFailed."""
        if self._is_stopping:
            return True
        is_first = not self.ready.done()
        if self._take_asked(*self._asked):
            return False
        if code not in self.spec.final_exit_codes and not (self.spec.needed and is_first):
            return False
        message = f"stopped for good ({self._exit_of(code)})"
        self._tracker.stops(self._end_of(code))
        self._print(message)
        if is_first:
            reason = f": {self._last_line.removeprefix('ada: ')}" if self._last_line else ""
            self.ready.set_exception(ProcessFailed(f"{self.spec.name} {message}{reason}"))
            self.ready.exception()  # marks it as read: not every caller awaits `ready`
        return True

    def _exit_of(self, code: int) -> str:
        return FORK_SERVER_ENDED if self.spec.forked and code == LOST else describe_exit(code)

    def _end_of(self, code: int) -> str:
        """Return how the process has ended: its exit code, and for an error its last line."""
        end = self._exit_of(code)
        line = self._last_line.removeprefix("ada: ") if code > 0 and end != FORK_SERVER_ENDED else ""
        return f"{end}: {line}" if line else end

    def kill(self) -> None:
        """Kill the process and what it has started. It runs again after a moment."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def runs_verb(self, verb: str) -> bool:
        """Return whether it runs this verb, such as `courier vk`, alone or among others."""
        return verb in self.spec.command[1:] or verb == " ".join(self.spec.command[1:])

    def start_again(self, verb: str) -> None:
        """Start it if it has ended, at once if it would be started after a pause. A part of it that has ended takes it
        to a new start; a part that runs is left alone. Former ends do not count: their reason was mended.
        """
        if self._is_stopping:
            return
        if not self._is_running:
            self._tracker = PartTracker(self.spec.name)
        self._again.set()
        if self._task.done():
            self._task = asyncio.create_task(self._run())
            return
        if self._is_running:
            self._asked[verb] = asyncio.get_running_loop().time()
        if verb in self._threads:
            self._begin_anew_for(self._threads[verb])

    def _begin_anew_for(self, part: UpPart) -> None:
        """Let all parts begin anew if one has ended for good and was asked for."""
        if part.state is PartState.STOPPED and self._process is not None and self._take_asked(part.name):
            send_signal(self._process, signal.SIGTERM)

    def _take_asked(self, *verbs: str) -> bool:
        """Return whether a start was asked for while the end was under way. Each request counts once."""
        now = asyncio.get_running_loop().time()
        asked = [self._asked.pop(verb) for verb in verbs if verb in self._asked]
        return any(now - at < ASKED_BEFORE_THE_END for at in asked)

    def let_end(self) -> None:
        """Let it not be started again."""
        self._is_stopping = True

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

    @property
    def parts(self) -> Sequence[UpPart]:
        """Return how each child does, and each thread of one."""
        return [part for child in self._children for part in child.parts]

    def start_again(self, verb: str) -> bool:
        """Start the child that runs this verb if it has ended; return whether there is one."""
        found = [child for child in self._children if child.runs_verb(verb)]
        for child in found:
            child.start_again(verb)
        return bool(found)

    def has_ended(self, name: str) -> bool:
        return any(child.has_ended for child in self._children if child.spec.name == name)

    def kill(self, name: str) -> None:
        """Kill a child with all its processes (SIGKILL). It is restarted."""
        for child in self._children:
            if child.spec.name == name:
                child.kill()

    async def stop(self) -> None:
        """Stop the children, highest stage first; return when the last one has ended.

        One that ends meanwhile, because it got a signal, too, is not started again, except for the lowest stage: the
        others store there what they finish.
        """
        stages = sorted({child.spec.stage for child in self._children}, reverse=True)
        for child in self._children:
            if child.spec.stage > stages[-1]:
                child.let_end()
        for stage in stages:
            await asyncio.gather(*(child.stop() for child in self._children if child.spec.stage == stage))


def describe_exit(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def send_signal(process: Process, number: signal.Signals) -> None:
    """Send a signal, unless the process has ended."""
    with suppress(ProcessLookupError):
        process.send_signal(number)
