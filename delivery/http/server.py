"""Listens for HTTP and runs the application, with public parts of aiohttp only (docs/decisions/0028).

What fails before there is a request (malformed HTTP, a head that is too long) does not reach the application. aiohttp
answers it in plain text and logs a traceback; `HttpConnection` makes it a problem document and one log line.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from aiohttp import web

from delivery.http import connection
from delivery.http.connection import ConnectionLimits, HttpConnection, OpenConnections, track_requests
from delivery.http.responses import middleware

_LOGGERS = ("asyncio", "aiohttp.server", connection.__name__, middleware.__name__)
"""Loggers that clients without a key can make write."""


@asynccontextmanager
async def listening(
    app: web.Application,
    host: str,
    port: int,
    *,
    share_port: bool = False,
    shutdown_timeout: float = 60.0,
    limits: ConnectionLimits | None = None,
) -> AsyncIterator[tuple[str, int]]:
    """Serves `app` until the block is left; yields host and port as bound. Raises OSError if it cannot listen.

    `share_port`: other processes may listen on the same port (SO_REUSEPORT); the kernel spreads connections over them.
    At the end requests in progress have `shutdown_timeout` seconds, then they are cancelled.
    """
    app.middlewares.insert(0, track_requests)
    limits, runner = limits or ConnectionLimits(), web.AppRunner(app, shutdown_timeout=shutdown_timeout)
    await runner.setup()
    manager = runner.server
    assert manager is not None, "setup creates it"
    connections = OpenConnections(limits)
    try:
        server = await asyncio.get_running_loop().create_server(
            lambda: HttpConnection(manager, connections),
            host,
            port,
            backlog=limits.backlog,
            reuse_port=share_port or None,
        )
        bound_host, bound_port, *_ = server.sockets[0].getsockname()
        try:
            with limited_logs(*_LOGGERS):
                yield bound_host, bound_port
        finally:
            server.close()
    finally:
        await runner.cleanup()


class LogLimit(logging.Filter):
    """Lets `count` records of one source line through in `seconds`. The first one after that reports how many were left
    out.
    """

    def __init__(self, count: int = 20, seconds: float = 60.0) -> None:
        super().__init__()
        self._count, self._seconds = count, seconds
        self._windows: dict[tuple[str, int], tuple[float, int]] = {}  # source line → (start, records)

    def filter(self, record: logging.LogRecord) -> bool:
        place, now = (record.pathname, record.lineno), time.monotonic()
        start, seen = self._windows.get(place, (now, 0))
        if now - start < self._seconds:
            self._windows[place] = (start, seen + 1)
            return seen < self._count
        self._windows[place] = (now, 1)
        if seen > self._count:
            record.msg, record.args = f"{record.getMessage()} ({seen - self._count} lines like this left out)", ()
        return True


@contextmanager
def limited_logs(*names: str) -> Iterator[None]:
    """Limit the loggers with these names."""
    limit = LogLimit()
    for name in names:
        logging.getLogger(name).addFilter(limit)
    try:
        yield
    finally:
        for name in names:
            logging.getLogger(name).removeFilter(limit)
