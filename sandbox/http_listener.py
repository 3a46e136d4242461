"""An HTTP server on one port, and the ways in which a provider's HTTP server fails."""

import asyncio
import ssl

from aiohttp import web

# Faults after which the message is stored.
STORED = frozenset(
    {"stored_then_not_json", "stored_then_bad_gateway", "stored_then_error", "stored_then_silence", "disconnect_after"}
)

MAX_BODY = 32 * 1024 * 1024
MAX_LINE = 128 * 1024  # Kannel takes texts of any length in the query; 4,096 letters are 24,576 bytes there


class HttpListener:
    """Serves an application from `start` to `stop`. Port 0 takes a free one; `path` is the path of `url`. With `tls`
    the connections are encrypted.
    """

    tls: ssl.SSLContext | None = None

    def __init__(self, app: web.Application, host: str, port: int, path: str) -> None:
        self._app = app
        self.host = host
        self.port = port
        self._path = path
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen. Raises OSError if the port is taken."""
        # Handlers end when the client disconnects; otherwise each `timeout` fault would keep one for ever.
        runner = web.AppRunner(
            self._app,
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=0.2,
            max_line_size=MAX_LINE,
        )
        self._runner = runner
        await runner.setup()
        await web.TCPSite(runner, self.host, self.port, ssl_context=self.tls).start()
        self.port = runner.addresses[0][1]

    async def listen_also(self) -> int:
        """Listen on one more free port and return it; the port of a request shows which one was called."""
        if self._runner is None:
            raise RuntimeError("the server is down")
        await web.TCPSite(self._runner, self.host, 0).start()
        return int(self._runner.addresses[-1][1])

    async def stop(self) -> None:
        """Stop listening and close all connections; safe to repeat."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{self._path}"


async def disconnect(request: web.Request) -> web.StreamResponse:
    """Close the connection at once, without a response."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def no_response() -> web.StreamResponse:
    """Send no response; end when the client disconnects or the server stops."""
    await asyncio.Event().wait()
    return web.Response()


async def respond_with(request: web.Request, fault: str, error: web.Response) -> web.StreamResponse:
    """Respond with a failure that is not a refusal of the API. `error`: the API's own error 500."""
    match fault:
        case "bad_gateway" | "stored_then_bad_gateway":
            return html_page(502, "502 Bad Gateway")
        case "not_json" | "stored_then_not_json":
            return html_page(200, "Technical works")
        case "stored_then_error":
            return error
        case "timeout" | "stored_then_silence":
            return await no_response()
    return await disconnect(request)


def html_page(status: int, title: str) -> web.Response:
    """Return the page that a proxy in front of a provider shows instead of the provider's response."""
    text = f"<html><head><title>{title}</title></head><body><center><h1>{title}</h1></center><hr>nginx</body></html>"
    return web.Response(status=status, text=text, content_type="text/html")
