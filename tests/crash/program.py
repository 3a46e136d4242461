"""One process of the product: started, asked to end, killed, frozen."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cli.processes.die_with_parent import tethered
from cli.processes.supervisor import read_announcement
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]


class Program:
    """`python -m MODULE WORDS`. It ends with the test process, however that ends."""

    def __init__(self, words: tuple[str, ...], environment: Mapping[str, str], log: Path, module: str = "cli") -> None:
        self.words = words
        self.log = log
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
        with log.open("ab") as written:
            self._process = subprocess.Popen(
                tethered([sys.executable, "-P", "-m", module, *words]),
                cwd=log.parent,
                env={**inherited, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **environment},
                stdin=subprocess.PIPE,
                stdout=written,
                stderr=written,
                start_new_session=True,
            )

    async def ready(self) -> Mapping[str, Any]:
        """What it announces when it can be used."""
        return await until(self._announced, within=30, every=0.02)

    def _announced(self) -> Mapping[str, Any]:
        assert self.is_up, f"{self.words} ended with {self._process.returncode}: {self.said[-3000:]}"
        found = (read_announcement(line) for line in self.said.splitlines())
        return next((facts for facts in found if facts is not None), {})

    @property
    def is_up(self) -> bool:
        return self._process.poll() is None

    @property
    def said(self) -> str:
        """All of its output so far."""
        return self.log.read_text()

    def kill(self) -> None:
        """SIGKILL: nothing is finished, nothing is told. Comes back when it is dead."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def freeze(self) -> None:
        """Nothing of it runs; its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def ask_to_end(self) -> None:
        """SIGTERM."""
        self._process.send_signal(signal.SIGTERM)

    async def ended(self, within: float = 20) -> int:
        """Its exit code, when it has ended."""
        await until(lambda: not self.is_up, within=within)
        return int(self._process.returncode)

    def parcels(self) -> int:
        """How many parcels this courier settled, by its own log."""
        return len(re.findall(r"parcel \S+: \d+ closed", self.said))
