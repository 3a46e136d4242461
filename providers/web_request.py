"""One HTTP request without a redirect, of bounded time and size: to an address that others have chosen, which must not
be private, or to an outside service of the settings, to which a redirect would take what is secret along.

A fault says whether the request may have arrived: then its repetition is not safe for every method. `tls_context`
has the certificates that every client of an outside service trusts.
"""

import ssl
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from core.errors import AdaError, SetupError
from core.model.public_addresses import TargetForbidden, guarded_socket, plain_socket
from core.sentence import Sentence, SentenceError, sentence

MOST_BYTES = 128 * 1024
_OWN = {"User-Agent": "Ada-Scenarios/1", "Accept-Encoding": "identity"}
"""A body is not unpacked: a small one may unpack to a very large one."""


class WebRequest(Struct, frozen=True):
    """`json`: the body as JSON bytes, None without a body."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    json: bytes | None = None
    time_limit: timedelta = timedelta(seconds=10)


class WebResponse(Struct, frozen=True):
    """`body`: what the JSON says, or the text of anything else."""

    status: int
    headers: Mapping[str, str]
    body: Any


class RawResponse(Struct, frozen=True):
    """A response whose body is as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WebFault(SentenceError):
    """There is no response. `may_have_arrived`: whether the request may have done what it should. `may_change`: whether
    another attempt may get one.
    """

    def __init__(self, reason: Sentence, *, may_have_arrived: bool, may_change: bool = True) -> None:
        super().__init__(reason)
        self.may_have_arrived = may_have_arrived
        self.may_change = may_change


async def send(request: WebRequest, *, allow_private: bool) -> WebResponse:
    """Return the response, with what its body says. Raises WebFault."""
    raw = await fetch(request, allow_private=allow_private)
    return WebResponse(raw.status, raw.headers, decoded(raw.body))


async def fetch(request: WebRequest, *, allow_private: bool, most: int = MOST_BYTES) -> RawResponse:
    """Return the response, of at most `most` bytes. Raises WebFault."""
    connector = aiohttp.TCPConnector(socket_factory=plain_socket if allow_private else guarded_socket)
    limit = aiohttp.ClientTimeout(total=request.time_limit.total_seconds())
    try:
        async with aiohttp.ClientSession(
            connector=connector, timeout=limit, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        ) as one:
            return await _exchange(one, request, most)
    except aiohttp.ClientConnectorError as fault:
        forbidden = isinstance(fault.os_error, TargetForbidden)
        reason = sentence("address_not_public") if forbidden else sentence("no_connection")
        raise WebFault(reason, may_have_arrived=False, may_change=not forbidden) from None
    except TimeoutError:
        seconds = request.time_limit.total_seconds()
        raise WebFault(sentence("no_response_in_time", seconds=f"{seconds:g}"), may_have_arrived=True) from None
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, UnicodeError):
        raise WebFault(sentence("address_no_url"), may_have_arrived=False, may_change=False) from None
    except (aiohttp.ClientError, OSError, ValueError) as fault:
        raise WebFault(sentence("connection_broke", fault=type(fault).__name__), may_have_arrived=True) from None


async def _exchange(session: aiohttp.ClientSession, request: WebRequest, most: int) -> RawResponse:
    content = {"Content-Type": "application/json"} if request.json is not None else {}
    headers = {**_OWN, **content, **request.headers}
    async with session.request(
        request.method, request.url, data=request.json, headers=headers, allow_redirects=False
    ) as response:
        raw = bytearray()
        while chunk := await response.content.read(MOST_BYTES):
            raw += chunk
            if len(raw) > most:
                raise WebFault(sentence("response_too_large", most=most // 1024), may_have_arrived=True)
        names = {name.lower(): value for name, value in response.headers.items() if name.lower() != "set-cookie"}
        return RawResponse(response.status, names, bytes(raw))


def decoded(raw: bytes) -> Any:
    """Return the JSON of a body, or its text if a JSON reader refuses it."""
    try:
        return msgspec.json.decode(raw) if raw else ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return raw.decode(errors="replace")


_LARGEST = 64 * 1024


class ServiceUnavailable(AdaError):
    """The service did not answer as such an address does. Trying again may help."""


async def call_service(
    method: str,
    url: str,
    seconds: float,
    *,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Return status and text of the response. Raises ServiceUnavailable, also for 3xx, 429 and 5xx."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session,
            session.request(method, url, data=body, headers=headers, allow_redirects=False) as response,
        ):
            if response.status >= 500 or response.status == 429 or 300 <= response.status < 400:
                raise ServiceUnavailable(f"the service answered {response.status}")
            return response.status, await _read(response)
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as fault:
        raise ServiceUnavailable(f"the service cannot be reached: {type(fault).__name__}") from None


async def _read(response: aiohttp.ClientResponse) -> str:
    """Return the whole answer. Raises ServiceUnavailable if it is too large."""
    received = bytearray()
    async for chunk in response.content.iter_any():
        received += chunk
        if len(received) > _LARGEST:
            raise ServiceUnavailable("the answer of the service is too large")
    return received.decode(errors="replace")


@cache
def tls_context(ca: Path | None, setting: str) -> ssl.SSLContext:
    """Return the system's certificates and those of the file `ca`, which `setting` names. Raises SetupError if that
    file cannot be read. All clients of a process share one context: reading the system's certificates takes 50 ms.
    """
    context = ssl.create_default_context()
    try:
        if ca is not None:
            context.load_verify_locations(cafile=ca)
    except OSError as error:
        raise SetupError(f"{setting} is {ca}, not a file with certificates ({error.strerror})") from None
    return context
