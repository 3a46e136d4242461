"""One HTTP server on one port, and the ways in which a provider's HTTP server fails."""

import asyncio

from aiohttp import web

LARGEST_BODY = 32 * 1024 * 1024
LONGEST_LINE = 128 * 1024  # Kannel takes a text of any length in the query; 4,096 letters are 24,576 bytes there


class Listener:
    """What a provider with an HTTP side is: an application, served from `start` to `stop`. Port 0 takes a free one;
    `path` is where it is to be asked.
    """

    def __init__(self, app: web.Application, host: str, port: int, path: str) -> None:
        self._app = app
        self.host = host
        self.port = port
        self._path = path
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen; raises OSError when the port is taken."""
        # A client that goes away ends its handler, otherwise every `timeout` fault would keep one for ever.
        runner = web.AppRunner(
            self._app,
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=0.2,
            max_line_size=LONGEST_LINE,
        )
        self._runner = runner
        await runner.setup()
        await web.TCPSite(runner, self.host, self.port).start()
        self.port = runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening and close all connections; safe to repeat."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def url(self) -> str:
        """The whole address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{self._path}"


async def cut(request: web.Request) -> web.StreamResponse:
    """Close the connection at once, without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def silence() -> web.StreamResponse:
    """Never answer; ends when the client goes away or the server stops."""
    await asyncio.Event().wait()
    return web.Response()


def html(status: int, title: str) -> web.Response:
    """Return the page that a proxy in front of a provider shows instead of an answer."""
    text = f"<html><head><title>{title}</title></head><body><center><h1>{title}</h1></center><hr>nginx</body></html>"
    return web.Response(status=status, text=text, content_type="text/html")
