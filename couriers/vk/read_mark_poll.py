"""Read marks of a community, by long poll with the event `message_read`.

A mark that is lost is covered by the dialog's next one.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from core.courier import ReadMark
from providers.vk.client import Client
from providers.vk.errors import TokenRefused, VkUnavailable
from providers.vk.long_poll import Events, LongPoll

PAUSE = 5.0  # seconds after a failure


async def read_marks(client: Client, community: int) -> AsyncIterator[ReadMark]:
    """Emit the read marks of the community until cancelled."""
    long_poll, position = LongPoll(client, community), ""
    while True:
        try:
            events, position = await long_poll.poll(position)
        except (VkUnavailable, TokenRefused):
            await asyncio.sleep(PAUSE)
            continue
        for mark in _marks_in(events):
            yield mark


def _marks_in(events: Events) -> Iterator[ReadMark]:
    for event in events:
        read = event.get("object") if event.get("type") == "message_read" else None
        if isinstance(read, dict) and _is_private(read) and isinstance(read.get("read_message_id"), int):
            yield ReadMark(str(read["from_id"]), read["read_message_id"])


def _is_private(read: Mapping[str, Any]) -> bool:
    """Return whether a mark is of a private dialog: that of one member of a chat does not concern the private messages
    to it.
    """
    return isinstance(read.get("from_id"), int) and read.get("peer_id", read["from_id"]) == read["from_id"]
