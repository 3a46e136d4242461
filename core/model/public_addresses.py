"""Which addresses are public: none inside the operator's network may be reached by what others wrote (SSRF).

`guarded_socket` makes each socket of a client, so a name that is resolved to another address later (DNS rebinding) and
every notation of an address meet the check.
"""

import ipaddress
import socket
from typing import Any

# IPv6 networks whose addresses contain an IPv4 address: NAT64 in the last 32 bits.
_NAT64 = tuple(ipaddress.IPv6Network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")

AddressInfo = tuple[Any, Any, int, str, Any]
"""As `socket.getaddrinfo` returns it: family, type, protocol, canonical name, address."""


class TargetForbidden(OSError):
    """The address is not public, so no connection is opened."""


def is_public(address: str) -> bool:
    """Return whether this IP address is outside of private, loopback, link-local, multicast and reserved networks. An
    IPv6 address that contains an IPv4 address is public only if both are.
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
    """Return a socket for this address. Raises TargetForbidden. For aiohttp's `socket_factory`."""
    if not is_public(info[4][0]):
        raise TargetForbidden("the address is not public")
    return plain_socket(info)


def plain_socket(info: AddressInfo) -> socket.socket:
    made = socket.socket(family=info[0], type=info[1], proto=info[2])
    made.setblocking(False)
    return made
