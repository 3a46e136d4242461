"""What a benchmark stands on: a Valkey with users' settings in a directory of its own, and its processes."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from redis.asyncio import Redis

from bench.harness.child import Child, Hear, python
from cli.commands.up import store_is_ready
from cli.processes import embedded_valkey as embedded
from cli.processes.aof_fsync import keep_synced
from cli.processes.supervisor import Facts, read_announcement
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.server_checks import sign_layout
from core.redis.store import Store

START = 60.0
"""Seconds for a process to be ready: on a busy machine the sandbox takes some to make its RSA key."""

API_KEY = "ada_benchmark"


class Ground:
    """`environment`: what every process started here is told. `redis`: our own eyes, not to be counted."""

    def __init__(self, directory: Path, program: Path | None = None) -> None:
        self.directory = directory
        server = embedded.prepare(directory / "valkey")
        self._command = server.command(program)
        self._syncing: asyncio.Task[None] | None = None
        self.url = server.url
        self.redis: Redis = Redis.from_url(self.url, decode_responses=True, client_name="bench", socket_timeout=START)
        self.environment = {
            "ADA_REDIS_URL": self.url,
            "ADA_DATA": str(directory),
            "ADA_API_KEY": API_KEY,
            "ADA_HTTP": "127.0.0.1:0",
            "ADA_LOG_LEVEL": "warning",
        }
        self._children: list[Child] = []

    async def start_store(self) -> None:
        store = await Child.start("valkey", self._command, embedded.ENVIRONMENT, self.directory, store_is_ready)
        self._children.append(store)
        await store.facts(START)
        await _sign(self.url)
        self._syncing = asyncio.create_task(keep_synced(self.directory / "valkey"))

    async def start(self, name: str, module: str, *words: str, hear: Hear = read_announcement) -> Child:
        """A process of a benchmark; what it announces is still to be heard."""
        child = await Child.start(name, python(module, *words), self.environment, self.directory, hear)
        self._children.append(child)
        return child

    async def start_verb(self, *words: str) -> tuple[Child, Facts]:
        """`./ada …`, when it is ready, and what it announced."""
        child = await self.start(" ".join(words), "cli", *words)
        return child, await child.facts(START)

    async def end(self, child: Child) -> None:
        await child.stop()
        self._children.remove(child)

    async def stop(self) -> None:
        """Ends everything, the server last."""
        await self.redis.aclose()
        for child in reversed(self._children):
            await child.stop()
        if self._syncing:
            await cancel_and_wait(self._syncing)

    @property
    def store(self) -> Child:
        return self._children[0]


async def _sign(url: str) -> None:
    """As a first start does, so that what a benchmark writes by itself is of this version for whoever starts later."""
    store = await Store.open(url)
    try:
        await sign_layout(store)
    finally:
        await store.close()


@asynccontextmanager
async def ground(program: Path | None = None) -> AsyncIterator[Ground]:
    """A fresh one, server running, until the block is left. `program`: another server than the embedded one."""
    with tempfile.TemporaryDirectory(prefix="ada-bench-") as directory:
        made = Ground(Path(directory), program)
        try:
            await made.start_store()
            yield made
        finally:
            await made.stop()


async def settle(redis: Redis) -> None:
    """The rewriting of the append-only file that the filling has brought about belongs to the filling."""
    for _ in range(600):
        facts = await redis.info("persistence")
        if not facts["aof_rewrite_in_progress"] and not facts["aof_rewrite_scheduled"]:
            return
        await asyncio.sleep(0.2)
