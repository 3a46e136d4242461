"""The HTTP client of the verbs that call a running Ada."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, Any

import aiohttp

from cli.client.first_api_key import read_api_key
from cli.client.own_server import own_server
from cli.client.unreachable import unreachable
from cli.command import FAILURE, WRONG_USAGE, CommandFailed
from cli.settings.parsing import Address
from cli.settings.settings import Settings

JsonObject = dict[str, Any]

_SILENCE = 60.0
"""Seconds without a byte after which a download has failed."""


@dataclass(frozen=True)
class Event:
    """One event of a delivery's event stream."""

    name: str
    data: JsonObject


@dataclass(frozen=True)
class Upload:
    """A body that is not JSON."""

    content: bytes | IO[bytes]
    media_type: str


class HttpClient:
    """Calls the API. An error response becomes CommandFailed with the message of the API."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str) -> None:
        self._session = session
        self._base_url = base_url

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        idempotency_key: str = "",
    ) -> JsonObject:
        """Return the decoded body. Raises CommandFailed, and SetupError if nothing listens there."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        try:
            async with self._session.request(
                method, self._base_url + path, json=body, params=query, headers=headers
            ) as response:
                return await read_response(response)
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError) as error:
            raise unreachable(self._base_url, error) from error

    async def upload(
        self, path: str, upload: Upload, query: Mapping[str, str], timeout: aiohttp.ClientTimeout
    ) -> JsonObject:
        """Return the decoded body; with status 422 the problem document with its errors. Raises as `call`."""
        headers = {"Content-Type": upload.media_type}
        try:
            async with self._session.post(
                self._base_url + path, data=upload.content, params=query, headers=headers, timeout=timeout
            ) as response:
                if response.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                    return await read_response(response)
                problem: JsonObject = json.loads(await response.text())
                return problem
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError) as error:
            raise unreachable(self._base_url, error) from error

    async def download(self, path: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Emit the body as it arrives. Raises CommandFailed, and SetupError if it breaks off."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=_SILENCE)
        try:
            async with self._session.get(self._base_url + path, params=query, timeout=timeout) as response:
                if response.status >= 400:
                    await read_response(response)
                async for chunk in response.content.iter_any():
                    yield chunk
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError) as error:
            raise unreachable(self._base_url, error) from error

    async def events(self, path: str) -> AsyncIterator[Event]:
        """Emit all events of a delivery, until its end. Raises CommandFailed, and SetupError if the stream breaks."""
        try:
            async with self._session.get(self._base_url + path, timeout=aiohttp.ClientTimeout(total=None)) as response:
                if response.status >= 400:
                    await read_response(response)
                async for event in read_events(response.content):
                    yield event
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError) as error:
            raise unreachable(self._base_url, error) from error


@asynccontextmanager
async def open_client(settings: Settings) -> AsyncIterator[HttpClient]:
    """Open a client for the API at ADA_HTTP, with the first API key. Raises SetupError.

    The key of the data directory is sent only to the server of that directory; ADA_API_KEY to whatever ADA_HTTP names.
    """
    key, address = read_api_key(settings), local_address(settings.http)
    if not settings.api_key:
        address = await asyncio.to_thread(own_server, address, key)
    async with connect(f"http://{address}", key) as client:
        yield client


@asynccontextmanager
async def connect(base_url: str, api_key: str) -> AsyncIterator[HttpClient]:
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {api_key}", "User-Agent": "ada-cli"}
    ) as session:
        yield HttpClient(session, base_url.rstrip("/"))


def local_address(address: Address) -> Address:
    """Return the address at which a client reaches a server that listens on this one: loopback, if it listens on
    all."""
    return Address({"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host), address.port)


async def read_response(response: aiohttp.ClientResponse) -> JsonObject:
    text = await response.text()
    if response.status >= 400:
        raise CommandFailed(error_message(response.status, text), WRONG_USAGE if response.status == 400 else FAILURE)
    body: JsonObject = json.loads(text) if text else {}
    return body


def error_message(status: int, text: str) -> str:
    """Return one line from a problem+json body; the status and the first characters of any other body."""
    try:
        problem = json.loads(text)
        errors = "; ".join(f"{error['path']}: {error['message']}" for error in problem.get("errors", []))
        return f"{problem['code']}: {errors or problem.get('detail') or problem['title']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"HTTP {status}: {text[:200]}"


async def read_events(stream: aiohttp.StreamReader) -> AsyncIterator[Event]:
    """Parse Server-Sent Events as they arrive. Comments (heartbeats) are skipped."""
    name, data = "", ""
    async for raw in stream:
        line = raw.decode().rstrip("\r\n")
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            data += value
        elif not line and data:
            yield Event(name, json.loads(data))
            name, data = "", ""
