"""What stands between the connections and the application.

Requests to an address that is always the same go straight to its handler. What goes wrong before there is a request
(broken HTTP, a head that is too long, a body that does not unpack) the library answers in plain text; here it becomes a
problem document like all others, and a line in the log instead of a traceback: what a stranger sends is no fault of
ours.
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from aiohttp import hdrs, web

from delivery.http.error_handling import Plain
from delivery.http.problems import of_http

log = logging.getLogger(__name__)

Address = tuple[str, str]
"""A method and a path without parameters."""

STRAIGHT = web.AppKey[dict[Address, Plain]]("straight", dict)


class Runner(web.AppRunner):
    """Runs the application of `delivery.app.build`."""

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        handlers = self.app[STRAIGHT]
        handler = _straight(handlers, made.request_handler)
        return _Server(
            handler,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            loop=made._loop,
            **made._kwargs,
        )


def _straight(
    handlers: Mapping[Address, Plain], otherwise: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Past the router, which with all around it takes 5 µs, a tenth of what a bare handler takes."""

    def handle(request: web.BaseRequest) -> Awaitable[web.StreamResponse]:
        handler = handlers.get((request.method, request.raw_path))
        if handler is None or hdrs.EXPECT in request.headers:
            return otherwise(request)
        return handler(request)  # type: ignore[arg-type] # requests are made by the application's factory

    return handle


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    __slots__ = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if sys.version_info < (3, 12):
            self._loop = cast(asyncio.AbstractEventLoop, _InOneTask(self._loop))

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """The answer to what could not be handled; the connection ends with it."""
        if isinstance(exc, ConnectionError) or request.writer.output_size:
            raise ConnectionAbortedError("the caller has gone, or has a part of the answer") from exc
        log.log(logging.ERROR if status >= 500 else logging.INFO, "%s from %s: %s", status, request.remote, exc)
        response = of_http(status).response()
        response.force_close()
        return response


class _InOneTask:
    """The loop as a connection's task sees it, where tasks cannot begin eagerly: the library gives each request a task
    of its own, and two more turns of the loop with it, a fifteenth of a request. Here its coroutine is awaited as it
    is, in the connection's task (docs/decisions/0027). Cancelling reaches it in the same way.
    """

    __slots__ = ("_loop", "call_at", "create_future", "time")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.call_at = loop.call_at
        self.create_future = loop.create_future
        self.time = loop.time

    def create_task(self, coroutine: Awaitable[Any]) -> Awaitable[Any]:
        return coroutine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)
