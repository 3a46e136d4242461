"""The queue of stepped tests of jobs and bots, and its server."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from core.queue import Claim, NewTask, Settlement, Task, Tube, Tubes, Worker
from core.queue.workers.stepping import SteppedQueue
from tests.support.paths import ROOT
from tests.support.stack import Stack
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


async def test_what_the_pace_of_a_tube_holds_back_is_handled_when_the_clock_is_moved(stack: Stack) -> None:
    handled: list[str] = []

    async def handle(task: Task, claim: Claim) -> Settlement:
        handled.append(task.body)
        return Settlement()

    await Tubes(stack.store).create(Tube("t", pace=0.01))
    queue = SteppedQueue(stack.store, stack.queue)
    queue.steps = {"t": Worker(stack.store, "t", handle).step}
    await stack.queue.put_many("t", [NewTask(str(number)) for number in range(3)])
    await queue.run()
    assert handled == ["0"]
    await queue.advance(timedelta(seconds=201))
    assert handled == ["0", "1", "2"]
