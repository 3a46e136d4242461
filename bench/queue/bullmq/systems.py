"""The systems that are compared: how their programs start, when their work has ended, and the server they work on.

The server is a Valkey with its default settings and an append-only file, over TCP, in a temporary directory.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from redis.asyncio import Redis

from bench.harness.environment import START_TIMEOUT, ChildProcess, clean_environment, python
from bench.harness.measurements import transition_count
from bench.harness.report import log_progress
from bench.queue.bullmq.ada_program import TUBE
from cli.command import CommandFailed
from cli.commands.start.installation import valkey_is_ready
from cli.processes.embedded_valkey import free_port, server_program
from cli.processes.supervisor import Announcement


@dataclass(frozen=True, slots=True)
class PlainServer:
    """Made by `plain_server()`."""

    directory: Path
    url: str
    redis: Redis

    async def run(self, name: str, command: Sequence[str], timeout: float) -> Announcement:
        """Runs a program until it has announced its facts, and returns them."""
        child = await self.start(name, command)
        try:
            return await child.facts(timeout)
        finally:
            await child.stop()

    async def start(self, name: str, command: Sequence[str]) -> ChildProcess:
        return await ChildProcess.start(name, command, {}, self.directory)


@asynccontextmanager
async def plain_server() -> AsyncIterator[PlainServer]:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="ada-bench-") as directory:
        options = ["--bind", "127.0.0.1", "--port", str(port), "--appendonly", "yes", "--save", ""]
        process = await ChildProcess.start(
            "valkey", [str(server_program()), *options], {}, Path(directory), valkey_is_ready
        )
        url = f"redis://127.0.0.1:{port}/0"
        redis: Redis = Redis.from_url(url, decode_responses=True, client_name="bench", socket_timeout=START_TIMEOUT)
        try:
            await process.facts(START_TIMEOUT)
            yield PlainServer(Path(directory), url, redis)
        finally:
            await redis.aclose()
            await process.stop()


BULLMQ = "bullmq"
PACKAGES = ("bullmq@6.7.0", "ioredis@5.11.1")
_PROGRAM = Path(__file__).with_name("bullmq_program.js")


@dataclass(frozen=True, slots=True)
class System:
    """`lanes`: whether its tasks have lanes. `command`: the program without its arguments. `done(redis, put)`: how many
    of the `put` tasks have ended.
    """

    name: str
    lanes: bool
    command: Sequence[str]
    done: Callable[[Redis, int], Awaitable[int]]

    def __call__(self, url: str, what: str, *args: object) -> list[str]:
        """Return the command line that does `what`."""
        return [*self.command, url, what, *(str(one) for one in args)]


def ada(lanes: bool) -> System:
    option = "lanes" if lanes else "no-lanes"
    command = [*python("bench.queue.bullmq.ada_program"), option]
    return System(f"ada, {'with' if lanes else 'without'} lanes", lanes, command, ada_done)


async def ada_done(redis: Redis, put: int) -> int:
    return await transition_count(redis, TUBE, "done")


def bullmq(directory: Path) -> System:
    """Return BullMQ as a system. `directory`: where it is installed."""
    return System(BULLMQ, False, [node(), str(directory / _PROGRAM.name)], bullmq_done)


async def bullmq_done(redis: Redis, put: int) -> int:
    """Return how many jobs have ended: those that are neither waiting nor active. Ended jobs are not kept."""
    async with redis.pipeline() as pipe:
        for state in ("wait", "active"):
            pipe.llen(f"bull:{TUBE}:{state}")
        unfinished: list[int] = await pipe.execute()
    return put - sum(unfinished)


def node() -> str:
    return program("node")


def program(name: str) -> str:
    """Return the path of a program. Raises CommandFailed."""
    if found := shutil.which(name):
        return found
    raise CommandFailed(f"{name} is not on this machine; install Node.js with npm to compare with BullMQ")


async def install(directory: Path) -> None:
    """Installs BullMQ and its client with npm, and copies our program beside them. Raises CommandFailed."""
    node()
    log_progress(f"installing {' and '.join(PACKAGES)}")
    options = ("--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0")
    process = await asyncio.create_subprocess_exec(
        *(program("npm"), "install", "--prefix", str(directory), *options, *PACKAGES),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=clean_environment({}),
        cwd=directory,
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise CommandFailed(f"npm cannot install {PACKAGES[0]}: {reason(output.decode(errors='replace'))}")
    shutil.copy(_PROGRAM, directory)


def reason(output: str) -> str:
    """Return the first error of npm that is not a bare code."""
    errors = [line.partition("error ")[2].strip() for line in output.splitlines() if "error " in line]
    causes = [line for line in errors if line and not line.startswith(("code ", "syscall ", "errno ", "type "))]
    return (causes or errors or ["no reason given"])[0]
