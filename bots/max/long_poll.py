"""Long polling of MAX as a source of `bots.receiving.poller.Poller`: at most two requests a second."""

import asyncio
import time

from bots.receiving.poller import Page
from providers.max.client import Client
from providers.max.errors import MaxRefused, MaxUnavailable
from providers.max.updates import poll, unsubscribe_all

_SPACING = 0.55
"""Seconds between two requests."""


class LongPoll:
    """One per process."""

    faults: tuple[type[Exception], ...] = (MaxUnavailable, MaxRefused)

    def __init__(self, client: Client) -> None:
        self._client = client
        self._polled_at = float("-inf")

    async def sign_in(self) -> str:
        """Return the name of the bot; end its subscriptions, beside which it cannot poll. Raises MaxUnavailable,
        MaxRefused, TokenRefused.
        """
        me = await self._client.call("GET", "me")
        await unsubscribe_all(self._client)
        return f"max.{me.get('user_id')}"

    async def poll(self, position: str) -> Page:
        """Wait for the next events. Raises MaxUnavailable, TokenRefused."""
        await asyncio.sleep(max(0.0, self._polled_at + _SPACING - time.monotonic()))
        self._polled_at = time.monotonic()
        page = await poll(self._client, position)
        return Page(page.updates, page.marker)
