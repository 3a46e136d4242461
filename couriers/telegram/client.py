"""Telethon's client without its handling of updates. The only use of private parts of Telethon."""

from telethon import TelegramClient


class Client(TelegramClient):  # type: ignore[misc] # Telethon has no types
    """A TelegramClient that discards all updates."""

    async def _update_loop(self) -> None:
        """Discard updates.

        Telethon treats each message that it sends as an update and looks for gaps in their numbers. If another process
        of the same bot sends as well, there are gaps, and each process then downloads through updates.getDifference
        what all the others sent. Telethon 1.45 has no public option against this: `receive_updates=False` concerns only
        the updates that Telegram sends unasked.
        Test: test_processes_of_one_bot_do_not_download_what_the_others_sent.
        """
        while True:
            await self._updates_queue.get()
