"""The environment of one benchmark: a Valkey with Ada's usual settings in a temporary directory, and its processes.

What a process announces (`cli.processes.supervisor.announce`) is read as facts; its last other lines are kept for the
error message. A process ends when this one ends, even after kill -9.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from redis.asyncio import Redis

from cli.command import CommandFailed
from cli.commands.start.installation import valkey_is_ready
from cli.processes import embedded_valkey
from cli.processes.die_with_parent import die_with_parent
from cli.processes.embedded_valkey import fsync_periodically
from cli.processes.supervisor import MAX_LINE_BYTES, Announcement, read_announcement, send_signal
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.server_checks import sign_layout
from core.redis.store import Store

ROOT = Path(__file__).resolve().parents[2]
_STOP_TIMEOUT = 15.0
_LINES_KEPT = 40

ParseLine = Callable[[str], Announcement | None]
"""The facts in a line of output, or None for an ordinary line."""


def python(module: str, *args: str) -> list[str]:
    """Return the command that runs a module of this project."""
    return [sys.executable, "-P", "-m", module, *args]


def clean_environment(further: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of this process without ADA_ settings, and with `further`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), **further}


class ChildProcess:
    """A running process. Made by `ChildProcess.start`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, parse_line: ParseLine) -> None:
        self.name = name
        self._process = process
        self._parse_line = parse_line
        self._facts: asyncio.Queue[Announcement | None] = asyncio.Queue()
        self._last_lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._reading = asyncio.create_task(self._read_output())

    @classmethod
    async def start(
        cls,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        parse_line: ParseLine = read_announcement,
    ) -> "ChildProcess":
        process = await asyncio.create_subprocess_exec(
            *die_with_parent(command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=clean_environment(environment),
            cwd=directory,
            start_new_session=True,
            limit=MAX_LINE_BYTES,
        )
        return cls(name, process, parse_line)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def facts(self, timeout: float) -> Announcement:
        """Returns the next announcement. Raises CommandFailed if the process ends first, or after `timeout` s."""
        try:
            facts = await asyncio.wait_for(self._facts.get(), timeout)
        except TimeoutError:
            raise CommandFailed(f"{self.name} announced nothing for {timeout:.0f} s{self._output()}") from None
        if facts is None:
            raise CommandFailed(f"{self.name} ended{self._output()}")
        return facts

    def _output(self) -> str:
        return "".join(f"\n  {line}" for line in self._last_lines)

    async def _read_output(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            text = line.decode(errors="replace").rstrip()
            facts = self._parse_line(text)
            if facts is None:
                self._last_lines.append(text)
            else:
                self._facts.put_nowait(facts)
        self._facts.put_nowait(None)

    async def stop(self) -> None:
        """Sends SIGTERM, and SIGKILL if the process does not end in time. Safe to repeat."""
        send_signal(self._process, signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_TIMEOUT)
        except TimeoutError:
            await self.kill()
        await self._reading

    async def kill(self) -> None:
        """Sends SIGKILL; returns when the process has ended."""
        send_signal(self._process, signal.SIGKILL)
        await self._process.wait()


START_TIMEOUT = 60.0
"""Seconds for a process to become ready. On a busy machine the sandbox needs some to make its RSA key."""

API_KEY = "ada_benchmark"

_AOF_CHECKS = 600
_AOF_CHECK_INTERVAL = 0.2


class Environment:
    """Made by `environment()`.

    `variables` are the environment variables of every process started here. The connection `redis` is named `bench`, so
    that the counters leave its commands out.
    """

    def __init__(
        self, directory: Path, program: Path | None = None, shards: int = 1, *, over_tcp: bool = False
    ) -> None:
        self.directory = directory
        server = embedded_valkey.prepare(directory / "valkey")
        self._server_command = server.command(program)
        self._syncing: asyncio.Task[None] | None = None
        self.url = server.tcp_url if over_tcp else server.url
        self.redis: Redis = Redis.from_url(
            self.url, decode_responses=True, client_name="bench", socket_timeout=START_TIMEOUT
        )
        self.variables = {
            "ADA_REDIS_URL": self.url,
            "ADA_SHARDS": str(shards),
            "ADA_DATA": str(directory),
            "ADA_API_KEY": API_KEY,
            "ADA_HTTP": "127.0.0.1:0",
            "ADA_QUIET_HOURS": "off",
            "ADA_LOG_LEVEL": "warning",
        }
        self._children: list[ChildProcess] = []

    async def start_server(self) -> None:
        server = await ChildProcess.start(
            "valkey", self._server_command, embedded_valkey.ENVIRONMENT, self.directory, valkey_is_ready
        )
        self._children.append(server)
        await server.facts(START_TIMEOUT)
        await _sign_layout(self.url, int(self.variables["ADA_SHARDS"]))
        self._syncing = asyncio.create_task(fsync_periodically(self.directory / "valkey"))

    async def start(
        self, name: str, module: str, *args: str, parse_line: ParseLine = read_announcement
    ) -> ChildProcess:
        """Starts `python -m module args`. What it announces is still to be read."""
        child = await ChildProcess.start(name, python(module, *args), self.variables, self.directory, parse_line)
        self._children.append(child)
        return child

    async def start_command(self, *args: str) -> tuple[ChildProcess, Announcement]:
        """Starts `./ada args`, waits until it is ready, returns it with what it announced."""
        child = await self.start(" ".join(args), "cli", *args)
        return child, await child.facts(START_TIMEOUT)

    async def stop_child(self, child: ChildProcess) -> None:
        await child.stop()
        self._children.remove(child)

    async def stop(self) -> None:
        """Stops every process, the server last."""
        await self.redis.aclose()
        for child in reversed(self._children):
            await child.stop()
        if self._syncing:
            await cancel_and_wait(self._syncing)

    @property
    def server(self) -> ChildProcess:
        return self._children[0]


async def _sign_layout(url: str, shards: int) -> None:
    """Writes the layout number, as the first start of Ada does: without it later processes refuse the data."""
    store = await Store.open(url, shards)
    try:
        await sign_layout(store)
    finally:
        await store.close()


@asynccontextmanager
async def environment(
    program: Path | None = None, shards: int = 1, *, over_tcp: bool = False
) -> AsyncIterator[Environment]:
    """Open a fresh environment with its server running.

    `program`: a server other than the embedded one. `over_tcp`: it is reached over TCP, not over its socket.
    """
    with tempfile.TemporaryDirectory(prefix="ada-bench-") as directory:
        env = Environment(Path(directory), program, shards, over_tcp=over_tcp)
        try:
            await env.start_server()
            yield env
        finally:
            await env.stop()


async def wait_for_aof_rewrite(redis: Redis) -> None:
    """Waits until the rewrite of the append-only file, caused by filling the server, is over (two minutes at most)."""
    for _ in range(_AOF_CHECKS):
        facts = await redis.info("persistence")
        if not facts["aof_rewrite_in_progress"] and not facts["aof_rewrite_scheduled"]:
            return
        await asyncio.sleep(_AOF_CHECK_INTERVAL)
