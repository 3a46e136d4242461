"""Listens for HTTP and runs the application, with public parts of aiohttp only (docs/decisions/0028).

What fails before there is a request (malformed HTTP, a head that is too long) does not reach the application. aiohttp
answers it in plain text and logs a traceback; `HttpConnection` makes it a problem document and one log line.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from delivery.http import connection
from delivery.http.connection import ConnectionLimits, HttpConnection, OpenConnections, track_requests
from delivery.http.log_limit import limited_logs
from delivery.http.responses import error_handling

_LOGGERS = ("asyncio", "aiohttp.server", connection.__name__, error_handling.__name__)
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
