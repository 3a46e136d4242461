"""Calls a webhook: signs the message (Standard Webhooks) and posts it, within limits of time and size.

Guarantees: no connection to an address inside the operator's network unless it is permitted (SSRF); no redirect is
followed; of a response at most `_MOST_BYTES` are read, and no call takes longer than the time limit. Neither secrets
nor bodies are logged. A name is checked when the webhook is created; what counts is the check of the address to which
a connection is opened (`core.model.public_addresses`).
"""

import asyncio
import socket
import time
from datetime import UTC, datetime, timedelta
from typing import Self
from urllib.parse import urlsplit

import aiohttp
from standardwebhooks import Webhook as Signer

from core.errors import Invalid
from core.model.public_addresses import TargetForbidden, guarded_socket, is_public, plain_socket
from core.webhooks.webhook import AttemptRecord, Webhook, WebhookMessage

MAX_URL = 2048
_SCHEMES = ("http", "https")
_RESOLVE_SECONDS = 5.0

TIME_LIMIT = timedelta(seconds=15)
_MOST_BYTES = 2**14
_MOST_HEADER_BYTES = 2**13
_MOST_WAIT = 3600


async def check_target(url: str, *, allow_private: bool) -> None:
    """Check a URL. Raises Invalid WEBHOOK_URL_MALFORMED, WEBHOOK_HOST_UNKNOWN, WEBHOOK_TARGET_FORBIDDEN."""
    host, port = host_of(url)
    addresses = await _resolve(host, port)
    if not allow_private and not all(is_public(address) for address in addresses):
        raise Invalid("WEBHOOK_TARGET_FORBIDDEN", "The host of a webhook must have a public address.", "url")


def host_of(url: str) -> tuple[str, int]:
    """Return the host and port of a URL that is suitable for a webhook. Raises Invalid WEBHOOK_URL_MALFORMED."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _malformed("It is not a URL.") from None
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise _malformed("It must begin with https:// or http:// and a host.")
    if parts.username is not None or parts.password is not None:
        raise _malformed("It must not contain a user or a password.")
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url or "\\" in url or parts.fragment:
        raise _malformed(f"It has at most {MAX_URL} ASCII characters, no spaces and no fragment.")
    return parts.hostname, port or (443 if parts.scheme == "https" else 80)


def _malformed(detail: str) -> Invalid:
    return Invalid("WEBHOOK_URL_MALFORMED", detail, "url")


async def _resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host. Raises Invalid WEBHOOK_HOST_UNKNOWN."""
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        raise Invalid("WEBHOOK_HOST_UNKNOWN", "The host of the webhook has no address.", "url") from None
    return [str(info[4][0]) for info in found]


class ReceiverResponse:
    """The response of a receiver. `wait`: seconds that it asked for in Retry-After, 0 if it did not."""

    def __init__(self, status: int | None, error: str, wait: int = 0) -> None:
        self.status = status
        self.error = error
        self.wait = wait


class WebhookClient:
    """Calls the webhooks of all tenants. `close` it at the end."""

    def __init__(self, *, allow_private: bool = False, time_limit: timedelta = TIME_LIMIT) -> None:
        self.allow_private = allow_private
        self._time_limit = aiohttp.ClientTimeout(total=time_limit.total_seconds())
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, webhook: Webhook, message: WebhookMessage, attempt: int) -> tuple[AttemptRecord, int]:
        """Send a message once. Returns the attempt, and how many seconds the receiver asks to wait."""
        started, clock = time.time(), time.monotonic()
        response = await self._post(webhook, message)
        duration_ms = round((time.monotonic() - clock) * 1000)
        record = AttemptRecord(
            message.id, message.type, attempt, round(started * 1000), duration_ms, response.status, response.error
        )
        return record, response.wait

    async def _post(self, webhook: Webhook, message: WebhookMessage) -> ReceiverResponse:
        """Post a message. All faults of a call are values: none is a fault of Ada."""
        try:
            host_of(webhook.url)
            return await self._exchange(webhook, message)
        except aiohttp.ClientConnectorCertificateError:
            return ReceiverResponse(None, "certificate")
        except aiohttp.ClientConnectorError as fault:
            forbidden = isinstance(fault.os_error, TargetForbidden)
            return ReceiverResponse(None, "target_forbidden" if forbidden else "connection")
        except TimeoutError:
            return ReceiverResponse(None, "timeout")
        except (aiohttp.ClientError, OSError, ValueError, Invalid):
            return ReceiverResponse(None, "connection")

    async def _exchange(self, webhook: Webhook, message: WebhookMessage) -> ReceiverResponse:
        headers = signed_headers(webhook, message, datetime.now(UTC))
        async with self._open().post(
            webhook.url, data=message.body.encode(), headers=headers, allow_redirects=False
        ) as response:
            error = _error_of(response.status)
            if not await _is_short(response):
                response.close()
            return ReceiverResponse(response.status, error, _wait_of(response))

    def _open(self) -> aiohttp.ClientSession:
        """Return the session, made at the first call: it belongs to the running event loop. No cookies are kept."""
        if self._session is None:
            make_socket = plain_socket if self.allow_private else guarded_socket
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, socket_factory=make_socket),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=self._time_limit,
                auto_decompress=False,
                max_line_size=_MOST_HEADER_BYTES,
                max_field_size=_MOST_HEADER_BYTES,
                headers={"User-Agent": "Ada-Webhooks/1", "Content-Type": "application/json"},
            )
        return self._session


def signed_headers(webhook: Webhook, message: WebhookMessage, now: datetime) -> dict[str, str]:
    """Return the three headers of Standard Webhooks."""
    return {
        "webhook-id": message.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Signer(webhook.secret).sign(message.id, now, message.body),
    }


def _error_of(status: int) -> str:
    if 200 <= status < 300:
        return ""
    return "redirect" if 300 <= status < 400 else "status"


async def _is_short(response: aiohttp.ClientResponse) -> bool:
    """Read the body to its end, so that the connection can be used again, unless it is long or does not come."""
    left = _MOST_BYTES
    try:
        async with asyncio.timeout(1):
            while left > 0 and (chunk := await response.content.read(left)):
                left -= len(chunk)
    except (TimeoutError, aiohttp.ClientError):
        return False
    return left > 0


def _wait_of(response: aiohttp.ClientResponse) -> int:
    asked = response.headers.get("Retry-After", "")
    return min(int(asked), _MOST_WAIT) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else 0
