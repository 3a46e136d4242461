"""Addresses of a person in a channel. Pure.

A channel that is not listed here has only one form of each address.
"""

from collections.abc import Iterable

from core.model.phone_numbers import e164


def without_duplicates(channel: str, addresses: Iterable[str]) -> list[str]:
    """Each address once, as it was written first: two written forms of one address would be two messages."""
    found: dict[str, str] = {}
    for address in addresses:
        found.setdefault(canonical(channel, address), address)
    return list(found.values())


def canonical(channel: str, address: str) -> str:
    """The one form of all written forms of an address; what is no address stays as it is."""
    match channel:
        case "sms":
            return e164(address) or address
        case "telegram" | "telegram-bot":
            return (e164(address) or address) if address.startswith("+") else _username(address)
        case "email":
            return address.strip().lower()  # servers that distinguish capitals exist only in theory
        case _:
            return address


def _username(address: str) -> str:
    return address.lower() if address.startswith("@") else address
