"""Connections for requests that must be announced when they have a connection, and before anything of them is sent.

The announcement is a context variable because aiohttp passes nothing of a caller to its connector.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

Announce = Callable[[], Awaitable[None]]

_announcement: ContextVar[Announce | None] = ContextVar("announcement", default=None)


@contextmanager
def announcing(announce: Announce) -> Iterator[None]:
    """Announce each request of this block; what `announce` raises is raised by the request, which is not sent then."""
    token = _announcement.set(announce)
    try:
        yield
    finally:
        _announcement.reset(token)


class AnnouncingConnector(aiohttp.TCPConnector):
    """Resolving, connecting, TLS and the wait for a free connection come before the announcement."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        if announce := _announcement.get():
            try:
                await announce()
            except BaseException:  # also a cancellation: the connection is free again
                connection.release()
                raise
        return connection
