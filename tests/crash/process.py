"""One process of Ada that a test can start, terminate, kill and freeze."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cli.processes.die_with_parent import die_with_parent
from cli.processes.supervisor import read_announcement
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]


class AdaProcess:
    """`python -m MODULE ARGS`. It ends with the test process, however that ends."""

    def __init__(self, args: tuple[str, ...], environment: Mapping[str, str], log: Path, module: str = "cli") -> None:
        self.args = args
        self.log = log
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                die_with_parent([sys.executable, "-P", "-m", module, *args]),
                cwd=log.parent,
                env={**inherited, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **environment},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    async def ready(self) -> Mapping[str, Any]:
        """Waits until the process is ready; returns its announcement."""
        return await until(self._announced, within=30, every=0.02)

    def _announced(self) -> Mapping[str, Any]:
        assert self.is_running, f"{self.args} ended with {self._process.returncode}: {self.output[-3000:]}"
        announcements = (read_announcement(line) for line in self.output.splitlines())
        return next((found for found in announcements if found is not None), {})

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def output(self) -> str:
        """Everything that the process has printed so far."""
        return self.log.read_text()

    def kill(self) -> None:
        """Sends SIGKILL; returns when the process has ended."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def freeze(self) -> None:
        """Sends SIGSTOP: the process does not run, and its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Sends SIGTERM; does not wait."""
        self._process.send_signal(signal.SIGTERM)

    async def wait(self, within: float = 20) -> int:
        """Waits until the process has ended; returns its exit code."""
        await until(lambda: not self.is_running, within=within)
        return int(self._process.returncode)

    def settled_parcels(self) -> int:
        """The number of parcels that this courier has settled, from its log."""
        return len(re.findall(r"parcel \S+: \d+ closed", self.output))
