"""The ways in which MAX hands over updates: long polling with a marker, or a subscription of an address.

Source: dev.max.ru, GET/updates, GET, POST, DELETE/subscriptions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from couriers.max.client import MaxClient
from couriers.max.events import TYPES

WAIT = 25
"""Seconds that MAX holds a poll without updates; 30 at most."""


class MaxUpdatePage(Struct, frozen=True):
    """The answer to one poll. `marker`: where the next one begins; it commits everything before it."""

    updates: Sequence[Mapping[str, Any]]
    marker: str


async def poll(client: MaxClient, marker: str, wait: int = WAIT) -> MaxUpdatePage:
    """Wait for the next updates, `wait` seconds at most. Without a marker only the newest update comes. Raises
    MaxUnavailable, MaxRefused, TokenRefused.
    """
    query = {"limit": "100", "timeout": str(wait), "types": ",".join(TYPES)} | ({"marker": marker} if marker else {})
    body = await client.call("GET", "updates", query, wait=wait)
    updates, found = body.get("updates"), body.get("marker")
    known = [one for one in updates if isinstance(one, dict)] if isinstance(updates, list) else []
    return MaxUpdatePage(known, str(found) if isinstance(found, int) else marker)


async def subscribed(client: MaxClient) -> list[str]:
    """Return the addresses to which MAX posts updates. Raises MaxUnavailable, MaxRefused, TokenRefused."""
    found = (await client.call("GET", "subscriptions")).get("subscriptions")
    return [str(one.get("url")) for one in found if isinstance(one, dict)] if isinstance(found, list) else []


async def subscribe(client: MaxClient, url: str, secret: str) -> None:
    """Have updates posted to an address. Raises MaxUnavailable, MaxRefused, TokenRefused."""
    body = {"url": url, "update_types": list(TYPES), "secret": secret}
    await client.call("POST", "subscriptions", body=body)


async def unsubscribe_all(client: MaxClient) -> None:
    """End all subscriptions, beside which MAX refuses polling. Raises MaxUnavailable, MaxRefused, TokenRefused."""
    for url in await subscribed(client):
        await client.call("DELETE", "subscriptions", {"url": url})
