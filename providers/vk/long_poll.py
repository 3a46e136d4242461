"""Bots Long Poll: waits for the next events of a community.

The community must have long poll and the events that are wanted switched on: `message_new`, for bots with scenarios
`message_event`, for read marks `message_read`. VK keeps events for a while under a number `ts`.
Source: dev.vk.com, "Bots Long Poll API".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from providers.vk.client import Client, faults
from providers.vk.library import BotPolling

WAIT = 10
"""Seconds that VK holds a request without events."""

Events = Sequence[Mapping[str, Any]]


class LongPoll:
    """The events of one community. vkbottle's loop around the same calls goes on when the token is refused, and when an
    event was not handled.
    """

    def __init__(self, client: Client, community: int) -> None:
        self._polling = BotPolling(client, community, wait=WAIT)
        self._server: dict[str, Any] = {}

    async def poll(self, position: str) -> tuple[Events, str]:
        """Wait for the events from a position on; return them and the next position. Without a position, and if VK has
        lost it, return that of now. Raises VkUnavailable, TokenRefused.
        """
        server, self._server = self._server, {}  # after a fault the server is asked for again
        events: Any = ()
        with faults("groups.getLongPollServer"):
            if not server or not position:
                server = await self._polling.get_server()
            if position:
                server["ts"] = position
                answer = await self._polling.get_event(server)
                if "failed" in answer:
                    server = await self._polling.handle_failed_event(server, answer)
                    server = server or await self._polling.get_server()
                else:
                    server["ts"], events = answer["ts"], answer.get("updates")
            next_position = str(server["ts"])
        self._server = server
        return [one for one in events if isinstance(one, dict)] if isinstance(events, list) else [], next_position
