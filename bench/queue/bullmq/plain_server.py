"""A Valkey with its default settings and an append-only file, over TCP, in a temporary directory."""

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from bench.harness.child_process import ChildProcess
from bench.harness.environment import START_TIMEOUT
from cli.commands.start.installation import valkey_is_ready
from cli.processes.embedded_valkey import free_port, server_program
from cli.processes.supervisor import Announcement


@dataclass(frozen=True, slots=True)
class PlainServer:
    """Made by `plain_server()`."""

    directory: Path
    url: str
    redis: Redis

    async def cpu_seconds(self) -> float:
        """Return what the server has used so far, in user and system mode."""
        facts: dict[str, Any] = await self.redis.info("cpu")
        return float(facts["used_cpu_user"] + facts["used_cpu_sys"])

    async def used_bytes(self) -> int:
        return int((await self.redis.info("memory"))["used_memory"])

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
