"""Listens for HTTP and runs the application, with public parts of aiohttp only (docs/decisions/0028).

What fails before there is a request (malformed HTTP, a head that is too long) does not reach the application. aiohttp
answers it in plain text and logs a traceback; `HttpConnection` makes it a problem document and one log line.

Clients without a key cannot take all connections. A connection waits (for the head of a request) or is busy (with a
request). A waiting one has limited time. If there are too many, the one that has waited longest is closed, so clients
that only wait cannot shut the others out.
"""

import asyncio
import logging
import resource
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler

from delivery.http.responses import middleware
from delivery.http.responses.problems import problem_of_status, respond

log = logging.getLogger(__name__)

_RESERVED_FILES = 64
"""Open files that are not connections of clients: the store, logs, the program itself."""

_LOGGERS = ("asyncio", "aiohttp.server", __name__, middleware.__name__)
"""Loggers that clients without a key can make write."""


def _share_of_files() -> tuple[int, int]:
    """Return (connections, backlog). asyncio accepts up to `backlog` connections in one go before any can be refused,
    so both together stay below the limit of open files.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 65_536 if files == resource.RLIM_INFINITY else files
    backlog = max(1, min(1024, (files - _RESERVED_FILES) // 4))
    return max(1, min(10_000, files - _RESERVED_FILES - backlog)), backlog


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Times are in seconds. `head`: from the first byte of a request's head to its last; `idle`: between two requests,
    longer than reverse proxies keep an idle connection; `rest`: for the rest of a body that is not read; `unread`: for
    a part of a response that the client does not read, while it sends nothing either.
    """

    head: float = 10.0
    idle: float = 75.0
    rest: float = 5.0
    unread: float = 60.0
    connections: int = field(default_factory=lambda: _share_of_files()[0])
    backlog: int = field(default_factory=lambda: _share_of_files()[1])


class HttpConnection(web.RequestHandler):
    """One connection. Bodies are not decompressed here: that waits until the client is authenticated."""

    __slots__ = (
        "_head_since",
        "_head_timer",
        "_limits",
        "_others",
        "_received",
        "_requests",
        "_socket",
        "_unread_timer",
    )

    def __init__(self, manager: web.Server, others: "OpenConnections") -> None:
        limits = others.limits
        super().__init__(
            manager,
            loop=asyncio.get_running_loop(),
            auto_decompress=False,
            keepalive_timeout=limits.idle,
            lingering_time=limits.rest,
        )
        self._others, self._limits = others, limits
        self._requests = 0
        self._received = 0  # how often something came
        self._head_since: float | None = None  # when the head began that is not complete
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._socket: asyncio.Transport  # `transport` is None as soon as the connection is to be closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "TCP"
        self._socket = transport
        super().connection_made(transport)
        self._others.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_head_timer()
        self._stop_unread_timer()
        self._others.remove(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_unread_timer()

    def resume_writing(self) -> None:
        self._stop_unread_timer()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        self._received += 1
        if not self._requests and self._head_since is None:
            self._head_since = asyncio.get_running_loop().time()
            if self._head_timer is None:
                self._check_head_after(self._limits.head)
        super().data_received(data)

    def request_started(self) -> None:
        """Note that the head of a request has arrived."""
        self._head_since = None
        self._requests += 1
        self._others.set_busy(self)

    def request_finished(self) -> None:
        """Note that there is a response; the next request may come."""
        self._requests -= 1
        self._others.set_waiting(self)
        if self._socket.get_write_buffer_size():
            self._start_unread_timer()

    def abort(self) -> None:
        """Close the connection at once, whatever is still to be written."""
        self._others.remove(self)
        self._socket.abort()

    def _start_unread_timer(self) -> None:
        self._stop_unread_timer()
        loop, received = asyncio.get_running_loop(), self._received
        self._unread_timer = loop.call_later(self._limits.unread, self._check_unread, received)

    def _check_unread(self, received: int) -> None:
        """Close the connection if the response is not read. A client that sends a long body may read the response to it
        later.
        """
        if self._received != received:
            self._start_unread_timer()
        elif self._socket.get_write_buffer_size():
            self.abort()

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _check_head_after(self, seconds: float) -> None:
        self._head_timer = asyncio.get_running_loop().call_later(seconds, self._check_head)

    def _check_head(self) -> None:
        """Close the connection if the head of a request takes too long. One timer serves many requests."""
        self._head_timer = None
        if self._head_since is None:
            return
        left = self._head_since + self._limits.head - asyncio.get_running_loop().time()
        if left > 0:
            self._check_head_after(left)
        else:
            self.abort()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Return the response to a request that could not be handled; the connection ends after it."""
        if isinstance(exc, ConnectionError) or request.writer.output_size:
            raise ConnectionAbortedError("the client is gone, or has a part of the response") from exc
        log.log(logging.ERROR if status >= 500 else logging.INFO, "%s from %s: %s", status, request.remote, exc)
        response = respond(problem_of_status(status))
        response.force_close()
        return response


class OpenConnections:
    """The open connections of one listener: at most `limits.connections`."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._open: set[HttpConnection] = set()
        self._waiting: dict[HttpConnection, None] = {}  # in the order in which they began to wait

    def add(self, connection: HttpConnection) -> None:
        """Add a new connection. If there are too many, close the one that has waited longest: if all others are busy,
        the new one.
        """
        self._open.add(connection)
        self._waiting[connection] = None
        if len(self._open) > self.limits.connections:
            log.warning("more than %d connections: the one that waited longest is closed", self.limits.connections)
            next(iter(self._waiting)).abort()

    def remove(self, connection: HttpConnection) -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def set_busy(self, connection: HttpConnection) -> None:
        self._waiting.pop(connection, None)

    def set_waiting(self, connection: HttpConnection) -> None:
        if connection in self._open:
            self._waiting[connection] = None


@web.middleware
async def track_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Return the outermost middleware: a connection is busy while its request is handled."""
    connection = request.protocol
    assert isinstance(connection, HttpConnection), "only `delivery.http.server` listens"
    connection.request_started()
    try:
        return await handler(request)
    finally:
        connection.request_finished()


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
