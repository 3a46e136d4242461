"""The server of stepped tests of jobs and bots."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.waiting import await_sync

PROGRAM = """
import os, pathlib, signal
from core.queue.workers.stepping import server_url
directory = pathlib.Path(server_url().removeprefix("unix://")).parent
print(directory, (directory / "pid").read_text().strip(), flush=True)
"""


@pytest.mark.parametrize("end", ["", "os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_the_server_and_its_directory_end_with_the_process(end: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM + end], cwd=ROOT, capture_output=True, text=True)
    directory, server = done.stdout.split()
    await_sync(lambda: not Path(directory).exists(), "the end of its directory")
    await_sync(lambda: not is_running(server), "the end of the server")


def is_running(process: str) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-p", process], capture_output=True, text=True).stdout.strip()
    return found != "" and not found.startswith("Z")
