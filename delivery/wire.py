"""What goes wrong before there is a request: broken HTTP, a head that is too long, a body that does not unpack.

The library answers these below the application, in plain text. Here they become problem documents like all others, and
lines in the log instead of tracebacks: what a stranger sends is no fault of ours.
"""

import logging

from aiohttp import web

from delivery.problems import of_http

log = logging.getLogger(__name__)


class Runner(web.AppRunner):
    """Runs the application of `delivery.app.build`."""

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _Server(made.request_handler, request_factory=made.request_factory, loop=made._loop, **made._kwargs)


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    __slots__ = ()

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
