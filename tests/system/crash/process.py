"""One process of Ada that a test can start, terminate, kill and freeze."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.processes.die_with_parent import die_with_parent
from cli.processes.supervisor import read_announcement
from tests.support.forked import ForkedProcess, Program
from tests.support.paths import ROOT
from tests.support.waiting import until


class AdaProcess:
    """`python -m MODULE ARGS`. It ends with the test process, however that ends.

    It is forked from a process with the same libraries. With a `PYTHONPATH` in `environment` it runs other code, so it
    gets an interpreter of its own.
    """

    def __init__(self, args: tuple[str, ...], environment: Mapping[str, str], log: Path, module: str = "cli") -> None:
        self.args = args
        self.log = log
        log.touch()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
        program = Program(module, args, {**inherited, "PYTHONPATH": str(ROOT), **environment}, log.parent, log)
        self._process = interpreter(program) if "PYTHONPATH" in environment else ForkedProcess(program)

    async def ready(self) -> Mapping[str, Any]:
        """Waits until the process is ready; returns its announcement."""
        return await until(self._announced, within=60, every=0.02)

    def _announced(self) -> Mapping[str, Any]:
        assert self.is_running, f"{self.args} ended with {self._process.poll()}: {self.output[-3000:]}"
        announcements = (read_announcement(line) for line in self.output.splitlines())
        return next((found for found in announcements if found is not None), {})

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def output(self) -> str:
        """Everything that the process has printed so far."""
        return self.log.read_text()

    def kill(self) -> None:
        """Sends SIGKILL; returns when the process has ended."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def freeze(self) -> None:
        """Sends SIGSTOP: the process does not run, and its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Sends SIGTERM; does not wait."""
        self._process.send_signal(signal.SIGTERM)

    def interrupt(self) -> None:
        """Sends SIGINT, as Ctrl-C does; does not wait."""
        self._process.send_signal(signal.SIGINT)

    async def wait(self, within: float = 60) -> int:
        """Waits until the process has ended; returns its exit code."""
        await until(lambda: not self.is_running, within=within)
        return self._process.poll() or 0

    def settled_parcels(self) -> int:
        """The number of parcels that this courier has settled, from its log (ADA_LOG_LEVEL=debug)."""
        return len(re.findall(r"parcel \S+: \d+ closed", self.output))


def interpreter(program: Program) -> subprocess.Popen[bytes]:
    """Starts the program in an interpreter of its own."""
    with program.log.open("ab") as output:
        return subprocess.Popen(
            die_with_parent([sys.executable, "-P", "-m", program.module, *program.args]),
            cwd=program.directory,
            env={**program.environment, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
