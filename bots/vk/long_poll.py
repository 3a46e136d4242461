"""Bots Long Poll of a VK community as a source of `bots.receiving.poller.Poller`."""

from msgspec.structs import replace

from bots.receiving.poller import Page
from providers.vk.client import Client
from providers.vk.community import find_community
from providers.vk.errors import VkUnavailable
from providers.vk.long_poll import Server, find_server, poll


class LongPoll:
    """One per process."""

    faults: tuple[type[Exception], ...] = (VkUnavailable,)

    def __init__(self, client: Client) -> None:
        self._client = client
        self._community = 0
        self._server: Server | None = None

    async def sign_in(self) -> str:
        """Return the name of the community. Raises VkUnavailable, TokenRefused."""
        self._community = await find_community(self._client)
        return f"vk.{self._community}"

    async def poll(self, position: str) -> Page:
        """Wait for the next events; without a position return that of now. Raises VkUnavailable, TokenRefused."""
        if self._server is None or not position:
            self._server = await find_server(self._client, self._community)
        if not position:
            return Page((), self._server.ts)
        try:
            answer = await poll(self._client, replace(self._server, ts=position))
        except VkUnavailable:
            self._server = None
            raise
        if answer.needs_server:
            self._server = None
        return Page(answer.events, answer.ts)
