"""Which addresses a webhook may have: http or https, and no address inside the operator's network (SSRF).

A name is checked when the webhook is created. What counts is the check of the address to which a connection is opened
(`core.model.public_addresses`).
"""

import asyncio
import socket
from urllib.parse import urlsplit

from core.errors import Invalid
from core.model.public_addresses import TargetForbidden, guarded_socket, is_public, plain_socket

__all__ = ["MAX_URL", "TargetForbidden", "check_target", "guarded_socket", "host_of", "is_public", "plain_socket"]

MAX_URL = 2048
_SCHEMES = ("http", "https")
_RESOLVE_SECONDS = 5.0


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
