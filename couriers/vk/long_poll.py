"""Bots Long Poll of a VK community as a source of `couriers.receiving.poller.Poller`."""

from couriers.receiving.poller import Page
from providers.vk import long_poll
from providers.vk.client import Client
from providers.vk.community import find_community
from providers.vk.errors import VkUnavailable


class LongPoll:
    """One per process."""

    faults: tuple[type[Exception], ...] = (VkUnavailable,)

    def __init__(self, client: Client) -> None:
        self._client = client

    async def sign_in(self) -> str:
        """Return the name of the community. Raises VkUnavailable, TokenRefused."""
        community = await find_community(self._client)
        self._long_poll = long_poll.LongPoll(self._client, community)
        return f"vk.{community}"

    async def poll(self, position: str) -> Page:
        """Wait for the next events; without a position return that of now. Raises VkUnavailable, TokenRefused."""
        return Page(*await self._long_poll.poll(position))
