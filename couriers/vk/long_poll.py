"""Bots Long Poll of a community as a source of `couriers.receiving.poller.Poller`.

The community must have long poll and the events that are wanted switched on: `message_new`, for bots with scenarios
`message_event`, for read marks `message_read`. VK keeps events for a while under a number `ts`.
Source: dev.vk.com, "Bots Long Poll API".
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from couriers.receiving.poller import Page
from couriers.sending import ReadMark
from couriers.vk.client import TokenRefused, VkClient, VkUnavailable, faults, find_community
from couriers.vk.library import BotPolling

WAIT = 10
"""Seconds that VK holds a request without events."""

PAUSE = 5.0  # seconds after a failure


class VkLongPoll:
    """One per process. vkbottle's loop around the same calls goes on when the token is refused, and when an event was
    not handled.
    """

    faults: tuple[type[Exception], ...] = (VkUnavailable,)

    def __init__(self, client: VkClient, community: int = 0) -> None:
        """Without a community `sign_in` asks for it, before the first poll."""
        self._client, self._community = client, community
        self._server: dict[str, Any] = {}

    async def sign_in(self) -> str:
        """Return the name of the community. Raises VkUnavailable, TokenRefused."""
        self._community = await find_community(self._client)
        return f"vk.{self._community}"

    async def poll(self, position: str) -> Page:
        """Wait for the events from a position on; return them and the next position. Without a position, and if VK has
        lost it, return that of now. Raises VkUnavailable, TokenRefused.
        """
        polling = BotPolling(self._client, self._community, wait=WAIT)
        server, self._server = self._server, {}  # after a fault the server is asked for again
        events: Any = ()
        with faults("groups.getLongPollServer"):
            if not server or not position:
                server = await polling.get_server()
            if position:
                server["ts"] = position
                answer = await polling.get_event(server)
                if "failed" in answer:
                    server = await polling.handle_failed_event(server, answer)
                    server = server or await polling.get_server()
                else:
                    server["ts"], events = answer["ts"], answer.get("updates")
            next_position = str(server["ts"])
        self._server = server
        return Page([one for one in events if isinstance(one, dict)] if isinstance(events, list) else [], next_position)


async def read_marks(client: VkClient, community: int) -> AsyncIterator[ReadMark]:
    """Emit the read marks of the community until cancelled. A lost mark is covered by the dialog's next one."""
    long_poll, position = VkLongPoll(client, community), ""
    while True:
        try:
            page = await long_poll.poll(position)
        except (VkUnavailable, TokenRefused):
            await asyncio.sleep(PAUSE)
            continue
        position = page.position
        for mark in _marks_in(page.events):
            yield mark


def _marks_in(events: Sequence[Mapping[str, Any]]) -> Iterator[ReadMark]:
    for event in events:
        read = event.get("object") if event.get("type") == "message_read" else None
        if isinstance(read, dict) and _is_private(read) and isinstance(read.get("read_message_id"), int):
            yield ReadMark(str(read["from_id"]), read["read_message_id"])


def _is_private(read: Mapping[str, Any]) -> bool:
    """Return whether a mark is of a private dialog: that of one member of a chat does not concern the private messages
    to it.
    """
    return isinstance(read.get("from_id"), int) and read.get("peer_id", read["from_id"]) == read["from_id"]
