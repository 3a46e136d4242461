"""Runs a simulated server for the time of a test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar


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
