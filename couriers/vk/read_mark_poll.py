"""Read marks of a community, by long poll with the event `message_read`.

A mark that is lost is covered by the dialog's next one.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from couriers.sending import ReadMark
from couriers.vk.client import VkClient
from couriers.vk.errors import TokenRefused, VkUnavailable
from couriers.vk.long_poll import VkLongPoll

PAUSE = 5.0  # seconds after a failure


async def read_marks(client: VkClient, community: int) -> AsyncIterator[ReadMark]:
    """Emit the read marks of the community until cancelled."""
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
