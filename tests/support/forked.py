"""Starts Python programs quickly: forks them from a process that has already imported their libraries.

An interpreter that imports the libraries of all couriers needs seconds of CPU; a fork needs milliseconds. A forked
program has a process, session, environment and working directory of its own, so it can be killed and frozen like any
other.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from cli.commands.start.installation import libraries
from cli.processes import forked_process
from cli.settings.settings import Configuration, Settings

PRELOADED = (
    forked_process.PRELOADING,
    *libraries(Configuration(Settings(), {})),
    "cli.commands.parts.sandbox",
    "cli.commands.parts.serve",
    "scenarios.execution.process",
    forked_process.PRELOADED,
)
"""The modules that Ada's own fork server imports, and those that the other programs need."""


@dataclass(frozen=True)
class Program:
    """`python -m module args` in `directory`. Its output is appended to `log`, what it writes to stderr to `errors` if
    that is given, and it reads `given`; `environment` is all it inherits.
    """

    module: str
    args: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    log: Path
    errors: Path | None = None
    given: Path = Path(os.devnull)


class ForkedProcess:
    """A forked program, with the methods of `subprocess.Popen`."""

    def __init__(self, program: Program) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(PRELOADED))
        self._process = context.Process(target=_run, args=(program,))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code (negative: the signal that ended it); None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self) -> None:
        self._process.join()


def run_ada(
    args: Sequence[str], environment: Mapping[str, str], directory: Path, module: str = "cli"
) -> subprocess.CompletedProcess[str]:
    """Run a verb without input, as `subprocess.run` does. `module`: another program."""
    with TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        process = ForkedProcess(Program(module, args, environment, directory, output, errors))
        process.wait()
        texts = output.read_text(), errors.read_text()
    return subprocess.CompletedProcess(args, process.poll() or 0, *texts)


def _run(program: Program) -> None:
    """Runs in the forked process."""
    os.setsid()
    _end_with_parent()
    os.chdir(program.directory)
    os.environ.clear()
    os.environ.update(program.environment)
    streams = (program.given, "rb"), (program.log, "ab"), (program.errors or program.log, "ab")
    for number, (path, mode) in enumerate(streams):
        with path.open(mode) as file:
            os.dup2(file.fileno(), number)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w", buffering=1)
    sys.argv = [program.module, *program.args]
    runpy.run_module(program.module, run_name="__main__", alter_sys=True)


def _end_with_parent() -> None:
    """Ends this process and its children when the test process ends, also by SIGKILL."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()
