"""Telethon's client with a plain handling of updates. The only use of private parts of Telethon."""

import asyncio
from collections.abc import Iterable
from typing import Any

from telethon import TelegramClient
from telethon.tl import types

from couriers.sending import ReadMark


class AccountClient(TelegramClient):  # type: ignore[misc] # Telethon has no types
    """A TelegramClient that keeps only read marks of private chats and discards all other updates."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.read_marks: asyncio.Queue[ReadMark] = asyncio.Queue()

    async def _update_loop(self) -> None:
        """Keep read marks, discard the rest.

        Telethon treats each message that it sends as an update and looks for gaps in their numbers. If another process
        of the same bot sends as well, there are gaps, and each process then downloads through updates.getDifference
        what all the others sent. Telethon 1.45 has no public option against this: `receive_updates=False` concerns only
        the updates that Telegram sends unasked. A read mark needs no order: it covers all messages before it.
        Test: test_processes_of_one_bot_do_not_download_what_the_others_sent.
        """
        while True:
            for update in _updates_in(await self._updates_queue.get()):
                if isinstance(update, types.UpdateReadHistoryOutbox) and isinstance(update.peer, types.PeerUser):
                    self.read_marks.put_nowait(ReadMark(str(update.peer.user_id), update.max_id))


def _updates_in(received: Any) -> Iterable[Any]:
    """Return the updates of what Telegram sent: one, several, or itself."""
    if isinstance(received, types.UpdateShort):
        return (received.update,)
    return getattr(received, "updates", None) or (received,)
