"""An installation as a user runs it: `./ada up` and the verbs beside it, as real processes."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cli.processes.embedded_valkey import free_port
from tests.support.forked import run_ada
from tests.support.paths import ROOT
from tests.support.waiting import await_sync

ADA = [sys.executable, "-P", "-m", "cli"]


class Installation:
    """One data directory and one port; `./ada up` can be started and stopped on it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        own = {"ADA_HTTP": f"127.0.0.1:{free_port()}", "ADA_DATA": str(directory / "data"), "ADA_QUIET_HOURS": "off"}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
        self.environment = {**inherited, "PYTHONPATH": str(ROOT), **own}
        self.process: subprocess.Popen[bytes] | None = None
        self.log = directory / "up.log"

    def up(self) -> dict[str, Any]:
        """Starts `./ada up`; returns what it prints when it is ready."""
        self.start("up", "--json")
        await_sync(lambda: self.facts() is not None, within=150, what=f"the start ({self.log})")
        return self.facts() or {}

    def up_for_people(self, *args: str) -> None:
        """Starts `./ada up` as people read it; returns when it is ready."""
        self.start("up", *args)
        await_sync(lambda: "Ada is up" in self.log.read_text(), within=150, what=f"the start ({self.log})")

    def start(self, *args: str) -> None:
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*ADA, *args], cwd=self.directory, env=self.environment, stdout=log)

    def facts(self) -> dict[str, Any] | None:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        ready = [json.loads(line)["ready"] for line in self.log.read_text().splitlines() if line.startswith('{"ready"')]
        return ready[0] if ready else None

    def ada(self, *args: str) -> subprocess.CompletedProcess[str]:
        if self.environment["PYTHONPATH"] == str(ROOT):
            return run_ada(args, self.environment, self.directory)
        return subprocess.run([*ADA, *args], cwd=self.directory, env=self.environment, capture_output=True, text=True)

    def result(self, *args: str) -> Any:
        done = self.ada(*args, "--json")
        assert done.returncode == 0, done.stderr + self.log.read_text()[-5000:]
        return json.loads(done.stdout.splitlines()[-1])

    def children(self) -> dict[int, str]:
        """Process id and command of `up` and of all its descendants."""
        assert self.process is not None
        found, table = {self.process.pid}, processes()
        while new := {pid for pid, (parent, _) in table.items() if parent in found} - found:
            found |= new
        return {pid: table[pid][1] for pid in found}

    def child(self, text: str) -> int:
        """Process id of the child whose command contains the text, up to the end of a word: `serve` is no server. The
        process from which the others are forked names their modules.
        """
        words = re.compile(rf"\b{re.escape(text)}(?![\w-])")
        return next(
            pid
            for pid, command in self.children().items()
            if words.search(command) and "die-with-parent" not in command and "forkserver" not in command
        )

    def terminate(self, text: str) -> None:
        """Sends SIGTERM to a child; returns when another one runs in its place."""
        before = self.child(text)
        os.kill(before, signal.SIGTERM)
        await_sync(lambda: self.has_another(text, before), within=60, what=text)

    def has_another(self, text: str, before: int) -> bool:
        try:
            return self.child(text) != before
        except StopIteration:
            return False

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        code = self.process.wait(timeout=60)
        self.process = None
        return code


def processes() -> dict[int, tuple[int, str]]:
    """Process id → id of the parent, and the command. Zombies are left out."""
    shown = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,command="], capture_output=True, text=True
    ).stdout
    rows = [line.split(None, 3) for line in shown.splitlines()]
    return {int(row[0]): (int(row[1]), row[-1]) for row in rows if not row[2].startswith("Z")}


def have_ended(pids: Iterable[int]) -> bool:
    return not set(pids) & processes().keys()


def new_installation(directory: Path) -> Iterator[Installation]:
    installation = Installation(directory)
    yield installation
    if installation.process is not None:
        installation.end()
