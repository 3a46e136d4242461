"""Which addresses are public: none inside the operator's network may be reached by what others wrote (SSRF).

`guarded_socket` makes each socket of a client, so a name that is resolved to another address later (DNS rebinding) and
every notation of an address meet the check.
"""

import ipaddress
import socket
from typing import Any

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All that is routed in IPv6 (RFC 4291). Site-local addresses, NAT64 and IPv4-compatible ones are outside of it."""

_DOCUMENTATION = ipaddress.IPv6Network("3fff::/20")
"""RFC 9637. Python knows it since 3.13."""

AddressInfo = tuple[Any, Any, int, str, Any]
"""As `socket.getaddrinfo` returns it: family, type, protocol, canonical name, address."""


class TargetForbidden(OSError):
    """The address is not public, so no connection is opened."""


def is_public(address: str) -> bool:
    """Return whether this IP address is outside of private, loopback, link-local, multicast and reserved networks. Of
    IPv6 only 2000::/3 is public. An IPv6 address that contains an IPv4 address is public only if both are.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(_is_public(one) for one in (found, *_embedded(found)))


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return True  # the embedded address decides
        return address in _GLOBAL_UNICAST and address not in _DOCUMENTATION and address.is_global
    return address.is_global and not (address.is_multicast or address.is_reserved)


def _embedded(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    return [one for one in found if one is not None]


def guarded_socket(info: AddressInfo) -> socket.socket:
    """Return a socket for this address. Raises TargetForbidden. For aiohttp's `socket_factory`."""
    if not is_public(info[4][0]):
        raise TargetForbidden("the address is not public")
    return plain_socket(info)


def plain_socket(info: AddressInfo) -> socket.socket:
    made = socket.socket(family=info[0], type=info[1], proto=info[2])
    made.setblocking(False)
    return made
