"""Long polling of MAX as a source of `couriers.receiving.poller.Poller`: at most two requests a second.

MAX that has lost its updates, or counts them anew, has nothing beyond our marker, refuses it, or answers with a lower
one. The marker that it gives without ours shows that. Then all updates are read that it has kept: a repeat is
recognised by its name.
"""

import asyncio
import time

from couriers.max.client import MaxClient
from couriers.max.errors import MaxRefused, MaxUnavailable
from couriers.max.updates import WAIT, poll, unsubscribe_all
from couriers.receiving.poller import Page, is_lower

_SPACING = 0.55
"""Seconds between two requests."""


class MaxLongPoll:
    """One per process."""

    faults: tuple[type[Exception], ...] = (MaxUnavailable, MaxRefused)

    def __init__(self, client: MaxClient, wait: int = WAIT) -> None:
        self._client = client
        self._wait = wait
        self._polled_at = float("-inf")

    async def sign_in(self) -> str:
        """Return the name of the bot; end its subscriptions, beside which it cannot poll. Raises MaxUnavailable,
        MaxRefused, TokenRefused.
        """
        me = await self._client.call("GET", "me")
        await unsubscribe_all(self._client)
        return f"max.{me.get('user_id')}"

    async def poll(self, position: str) -> Page:
        """Wait for the next events. Raises MaxUnavailable, MaxRefused, TokenRefused."""
        page, refusal = None, None
        try:
            page = await self._poll(position, self._wait)
        except MaxRefused as fault:
            refusal = fault
        if position and (page is None or not is_lower(position, page.position)):
            page = await self._kept_since_a_loss(position) or page
        if page is None:
            assert refusal is not None
            raise refusal
        return page

    async def _kept_since_a_loss(self, position: str) -> Page | None:
        """Return the events that MAX has kept if its position is before ours; else None."""
        newest = await self._poll("", 0)
        if not is_lower(newest.position, position):
            return None
        try:
            kept = await self._poll("0", 0)
        except MaxRefused:  # it takes no marker but its own
            return newest
        return kept if kept.events else newest

    async def _poll(self, position: str, wait: int) -> Page:
        await asyncio.sleep(max(0.0, self._polled_at + _SPACING - time.monotonic()))
        self._polled_at = time.monotonic()
        page = await poll(self._client, position, wait)
        return Page(page.updates, page.marker)
