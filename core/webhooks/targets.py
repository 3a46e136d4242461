"""Which addresses a webhook may have: http or https, and no address inside the operator's network (SSRF).

A name is checked when the webhook is created. What counts is the check of the address to which a connection is opened:
`guarded_socket` makes each socket, so a name that is resolved to another address later (DNS rebinding) and every
notation of an address meet it.
"""

import asyncio
import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit

from core.errors import Invalid

MAX_URL = 2048
_SCHEMES = ("http", "https")
_RESOLVE_SECONDS = 5.0
# IPv6 networks whose addresses contain an IPv4 address: NAT64 in the last 32 bits.
_NAT64 = tuple(ipaddress.IPv6Network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")

AddressInfo = tuple[Any, Any, int, str, Any]
"""As `socket.getaddrinfo` returns it: family, type, protocol, canonical name, address."""


class TargetForbidden(OSError):
    """The address is not public, so no connection is opened."""


def is_public(address: str) -> bool:
    """Whether this IP address is outside of private, loopback, link-local, multicast and reserved networks. An IPv6
    address that contains an IPv4 address is public only if both are.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(_is_public(one) for one in (found, *_embedded(found)))


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return True  # the embedded address decides
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_private or address.is_link_local
    )


def _embedded(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _COMPATIBLE or any(address in network for network in _NAT64):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [one for one in found if one is not None]


def guarded_socket(info: AddressInfo) -> socket.socket:
    """A socket for this address. Raises TargetForbidden. For aiohttp's `socket_factory`."""
    if not is_public(info[4][0]):
        raise TargetForbidden("the address is not public")
    return plain_socket(info)


def plain_socket(info: AddressInfo) -> socket.socket:
    made = socket.socket(family=info[0], type=info[1], proto=info[2])
    made.setblocking(False)
    return made


async def check_target(url: str, *, allow_private: bool) -> None:
    """Raises Invalid WEBHOOK_URL_MALFORMED, WEBHOOK_HOST_UNKNOWN, WEBHOOK_TARGET_FORBIDDEN."""
    host, port = host_of(url)
    addresses = await _resolve(host, port)
    if not allow_private and not all(is_public(address) for address in addresses):
        raise Invalid("WEBHOOK_TARGET_FORBIDDEN", "The host of a webhook must have a public address.", "url")


def host_of(url: str) -> tuple[str, int]:
    """The host and port of a URL that is suitable for a webhook. Raises Invalid WEBHOOK_URL_MALFORMED."""
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
    """Raises Invalid WEBHOOK_HOST_UNKNOWN."""
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        raise Invalid("WEBHOOK_HOST_UNKNOWN", "The host of the webhook has no address.", "url") from None
    return [str(info[4][0]) for info in found]
