"""Runs a server for the time of a test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

from aiohttp import web


class Startable(Protocol):
    """A server of the sandbox, or of the tests."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


S = TypeVar("S", bound=Startable)


@asynccontextmanager
async def serving(server: S) -> AsyncIterator[S]:
    await server.start()
    yield server
    await server.stop()


@asynccontextmanager
async def serving_app(app: web.Application) -> AsyncIterator[str]:
    """Serve an application on a free port; yield its URL."""
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()
