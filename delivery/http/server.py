"""Listens for HTTP and runs the application, with public parts of aiohttp only (docs/decisions/0028).

What fails before there is a request (malformed HTTP, a head that is too long) does not reach the application. aiohttp
answers it in plain text and logs a traceback; `Connection` makes it a problem document and one log line.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from delivery.http.problems import problem_of_status, respond

log = logging.getLogger(__name__)

BACKLOG = 1024
"""Connections that the kernel keeps until they are accepted."""


class Connection(web.RequestHandler):
    """One connection."""

    __slots__ = ()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """The response to a request that could not be handled; the connection ends after it."""
        if isinstance(exc, ConnectionError) or request.writer.output_size:
            raise ConnectionAbortedError("the client is gone, or has a part of the response") from exc
        log.log(logging.ERROR if status >= 500 else logging.INFO, "%s from %s: %s", status, request.remote, exc)
        response = respond(problem_of_status(status))
        response.force_close()
        return response


@asynccontextmanager
async def listening(
    app: web.Application, host: str, port: int, *, share_port: bool = False, shutdown_timeout: float = 60.0
) -> AsyncIterator[tuple[str, int]]:
    """Serves `app` until the block is left; yields host and port as bound. Raises OSError if it cannot listen.

    `share_port`: other processes may listen on the same port (SO_REUSEPORT); the kernel spreads connections over them.
    At the end requests in progress have `shutdown_timeout` seconds, then they are cancelled.
    """
    loop, runner = asyncio.get_running_loop(), web.AppRunner(app, shutdown_timeout=shutdown_timeout)
    await runner.setup()
    manager = runner.server
    assert manager is not None, "setup creates it"
    try:
        server = await loop.create_server(
            lambda: Connection(manager, loop=loop), host, port, backlog=BACKLOG, reuse_port=share_port or None
        )
        bound_host, bound_port, *_ = server.sockets[0].getsockname()
        try:
            yield bound_host, bound_port
        finally:
            server.close()
    finally:
        await runner.cleanup()
