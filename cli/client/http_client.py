"""The HTTP client of the verbs that call a running Ada.

It is that of the standard library, in a thread: importing aiohttp takes longer than most commands.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from math import inf
from typing import IO, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from cli.client.own_server import own_server, read_api_key, unreachable
from cli.command import FAILURE, WRONG_USAGE, CommandFailed
from cli.settings.parsing import Address
from cli.settings.settings import Settings

JsonObject = dict[str, Any]
T = TypeVar("T")

_CONNECT = 10.0
_SILENCE = 60.0
"""Seconds without a byte after which a download has failed."""
_CALL = 300.0
_UPLOAD = 600.0
_CHUNK = 2**16
_MOST_ERRORS = 20
"""Errors of a request that are printed."""


@dataclass(frozen=True)
class Event:
    """One event of a delivery's event stream."""

    name: str
    data: JsonObject


@dataclass(frozen=True)
class ClientUpload:
    """A body that is not JSON."""

    content: bytes | IO[bytes]
    media_type: str


@dataclass(frozen=True)
class _Request:
    """`silence`: seconds without a byte after which it has failed; None waits forever."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    content: bytes | IO[bytes] | None = None
    headers: Mapping[str, str] | None = None
    silence: float | None = _CALL

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


def _reason_headers(reason: str) -> dict[str, str]:
    return {"Ada-Reason": quote(reason)} if reason else {}


class HttpClient:
    """Calls the API, each time over a new connection. An error response becomes CommandFailed with the message of the
    API.
    """

    def __init__(self, base_url: str, api_key: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}", "User-Agent": "ada-cli"}

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        idempotency_key: str = "",
        reason: str = "",
    ) -> JsonObject:
        """Return the decoded body. `reason`: for what is logged with one. Raises CommandFailed, and SetupError if
        nothing listens there.
        """
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if content else {}
        headers |= {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        headers |= _reason_headers(reason)
        async with self._response(_Request(method, path, query, content, headers)) as response:
            return read_response(response.status, await self._in_thread(response.read))

    async def upload(self, path: str, upload: ClientUpload, query: Mapping[str, str]) -> JsonObject:
        """Return the decoded body; with status 422 the problem document with its errors. Raises as `call`."""
        headers = {"Content-Type": upload.media_type}
        async with self._response(_Request("POST", path, query, upload.content, headers, _UPLOAD)) as response:
            content = await self._in_thread(response.read)
            if response.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                return read_response(response.status, content)
            problem: JsonObject = json.loads(content)
            return problem

    async def download(self, path: str, query: Mapping[str, str], reason: str = "") -> AsyncIterator[bytes]:
        """Emit the body as it arrives. `reason`: as of `call`. Raises CommandFailed, and SetupError if it breaks
        off.
        """
        request = _Request("GET", path, query, headers=_reason_headers(reason), silence=_SILENCE)
        async with self._stream(request) as response:
            while chunk := await self._in_thread(lambda: response.read1(_CHUNK)):
                yield chunk

    async def events(self, path: str) -> AsyncIterator[Event]:
        """Emit all events of a delivery, until its end. Raises CommandFailed, and SetupError if the stream breaks."""
        name, data = "", ""
        async with self._stream(_Request("GET", path, silence=None)) as response:
            async for line in self._lines(response):  # one that begins with a colon is a heartbeat
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    data += value
                elif not line and data:
                    yield Event(name, json.loads(data))
                    name, data = "", ""

    async def _lines(self, response: HTTPResponse) -> AsyncIterator[str]:
        """Emit the lines of a body as they arrive. `readline` would take a body that breaks off for a whole one."""
        rest = b""
        while chunk := await self._in_thread(lambda: response.read1(_CHUNK)):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.decode().rstrip("\r")

    @asynccontextmanager
    async def _stream(self, request: _Request) -> AsyncIterator[HTTPResponse]:
        async with self._response(request) as response:
            if response.status >= HTTPStatus.BAD_REQUEST:
                read_response(response.status, await self._in_thread(response.read))
            yield response

    @asynccontextmanager
    async def _response(self, request: _Request) -> AsyncIterator[HTTPResponse]:
        """Send a request and yield the response, whose body is still to be read."""
        address = urlsplit(self._base_url)
        connection = HTTPConnection(str(address.hostname), address.port, timeout=_CONNECT)
        await self._in_thread(connection.connect)
        used = connection.sock
        try:
            yield await self._in_thread(lambda: self._send(connection, request))
        finally:
            with suppress(OSError):
                used.shutdown(socket.SHUT_RDWR)  # ends a thread that still reads
            connection.close()

    def _send(self, connection: HTTPConnection, request: _Request) -> HTTPResponse:
        connection.sock.settimeout(request.silence)
        with suppress(BrokenPipeError, ConnectionResetError):  # the server has refused the body before its end
            connection.request(
                request.method, request.target, request.content, {**self._headers, **(request.headers or {})}
            )
        return connection.getresponse()

    async def _in_thread(self, step: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(step)
        except (OSError, HTTPException) as error:
            raise unreachable(self._base_url, error) from error


async def open_client(settings: Settings) -> HttpClient:
    """Return a client for the API at ADA_HTTP, with the first API key. Raises SetupError.

    The key of the data directory is sent only to the server of that directory; ADA_API_KEY to whatever ADA_HTTP names.
    """
    key, address = read_api_key(settings), local_address(settings.http)
    if not settings.api_key:
        address = await asyncio.to_thread(own_server, address, key)
    return HttpClient(f"http://{address}", key)


def local_address(address: Address) -> Address:
    """Return the address at which a client reaches a server that listens on this one: loopback, if it listens on
    all."""
    return Address({"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host), address.port)


def read_response(status: int, content: bytes) -> JsonObject:
    text = content.decode()
    if status >= HTTPStatus.BAD_REQUEST:
        raise CommandFailed(error_message(status, text), WRONG_USAGE if status == HTTPStatus.BAD_REQUEST else FAILURE)
    body: JsonObject = json.loads(text) if text else {}
    return body


def error_message(status: int, text: str) -> str:
    """Return the message of a problem+json body; the status and the first characters of any other body."""
    try:
        problem = json.loads(text)
        errors = format_errors(problem.get("errors", []))
        head = problem["title"] if errors.startswith("\n") else ""
        return f"{problem['code']}: {head}{errors or problem.get('detail') or problem['title']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"HTTP {status}: {text[:200]}"


def format_errors(errors: Sequence[JsonObject]) -> str:
    """Return the first errors of a request, several each on a line of its own."""
    shown = [f"{_place(error)}: {error['message']}" for error in errors[:_MOST_ERRORS]]
    if len(errors) > _MOST_ERRORS:
        shown.append(f"and {len(errors) - _MOST_ERRORS} more")
    return "\n  ".join(["", *shown]) if len(shown) > 1 or any(error.get("row") for error in errors) else "".join(shown)


def _place(error: JsonObject) -> str:
    if not error.get("row"):
        return str(error["path"])
    return f"row {error['row']}, column {error['column']}" if error.get("column") else f"row {error['row']}"


_PAGE = 500


async def items(
    api: HttpClient, path: str, name: str, query: Mapping[str, str], most: float = inf, reason: str = ""
) -> AsyncIterator[dict[str, Any]]:
    """Emit the first `most` items of a list, in the order of the API. `name`: the field of a page that has them;
    `reason`: as of `HttpClient.call`.
    """
    cursor: str | None = ""
    while cursor is not None and most > 0:
        of_page = {**query, "limit": str(_PAGE), **({"cursor": cursor} if cursor else {})}
        page = await api.call("GET", path, query=of_page, reason=reason)
        for item in page[name][: int(min(most, _PAGE))]:
            yield item
        most -= len(page[name])
        cursor = page["next"]


def quoted(given: str) -> str:
    """Return an id as a part of a path."""
    return quote(given, safe="")
