"""Starts modules as forks of one process that has imported their libraries.

Importing the libraries takes a second of processor time and 60 MB. A fork has them at once and shares the memory. The
process that forks is Python's own fork server; it knows no setting of Ada, and a fork receives exactly the environment
that it is given (docs/decisions/0118-couriers-and-bots-are-forked.md).
"""

import asyncio
import multiprocessing
import os
import re
import runpy
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from multiprocessing import connection, forkserver
from multiprocessing.connection import Connection
from threading import Thread

from setproctitle import setproctitle

from cli.processes.data_directory import PRIVATE_UMASK
from cli.settings.sources import PREFIX

_URL = re.compile(r"://(?:\S*@\S*|([^\s/?#]+)[/?#]\S*)")
"""With a name, or with anything behind the host."""

PRELOADING, PRELOADED = "cli.processes.preloading", "cli.processes.preloaded"
"""The first and the last module that the fork server imports."""

LOST = 255
"""The exit code that multiprocessing gives to a process whose end the fork server did not see."""

_CONTEXT = multiprocessing.get_context("forkserver")


def start_fork_server(modules: Sequence[str]) -> None:
    """Start the fork server, which imports the modules meanwhile. A fork waits until it has them."""
    _CONTEXT.set_forkserver_preload([PRELOADING, *modules, PRELOADED])
    _run_fork_server()


def _run_fork_server() -> None:
    """Start the server if it does not run, without our settings: they are secrets of other processes."""
    ours = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(PREFIX)}
    try:
        forkserver.ensure_running()
    finally:
        os.environ.update(ours)


class ForkedProcess:
    """A running fork, with the surface of `asyncio.subprocess.Process` that the supervisor uses.

    A fork whose server ended is killed, because nothing would notice its end.
    """

    def __init__(self, process: multiprocessing.process.BaseProcess, stdout: asyncio.StreamReader) -> None:
        assert process.pid is not None
        self.pid: int = process.pid
        self.stdout = stdout
        self._process = process
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(process.sentinel, self._note_end)

    def _note_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._process.sentinel)
        if self.returncode == LOST:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self._ended.set()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    async def wait(self) -> int:
        """Return the exit code, below 0 for a signal."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode


async def fork(command: Sequence[str], environment: Mapping[str, str], limit: int) -> ForkedProcess:
    """Run a module with its arguments in a fork, as `python -m` does, with exactly this environment.

    Reading a line of more than `limit` bytes raises ValueError.
    """
    reader, writer = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=run_fork, args=(list(command), dict(environment), writer))
    _run_fork_server()
    with writer:
        await asyncio.to_thread(process.start)  # blocks until the server has imported its modules
    stdout = asyncio.StreamReader(limit)
    output = os.fdopen(os.dup(reader.fileno()), "rb")
    reader.close()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), output)
    return ForkedProcess(process, stdout)


def run_fork(command: Sequence[str], environment: Mapping[str, str], output: Connection) -> None:
    """Run the module in the fork, after making the fork a process of its own, like a started program."""
    os.setsid()
    os.umask(PRIVATE_UMASK)
    os.environ.clear()
    os.environ.update(environment)
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, TextIOWrapper)
        os.dup2(output.fileno(), stream.fileno())
        stream.reconfigure(line_buffering=True)
    output.close()
    sys.argv = list(command)
    setproctitle(title_of(command))
    Thread(target=end_with_parent, daemon=True).start()
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)


def title_of(command: Sequence[str]) -> str:
    """Return what `ps` shows of a fork, to each user of the machine: of a URL only the host, because the rest may be a
    secret.
    """
    words = [_URL.sub(lambda found: f"://{found[1] or ''}/…", word) for word in command]
    return f"{sys.executable} -m {' '.join(words)}"


def end_with_parent() -> None:
    """End this process after its parent, also if that was killed: SIGTERM, and SIGKILL for what it started, too."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os.killpg(0, signal.SIGKILL)


GRACE = 10.0
"""Seconds between the two signals."""
