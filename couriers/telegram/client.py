"""Telethon's client, which does not keep up with updates: a courier sends, and nothing is told to it."""

from telethon import TelegramClient


class Client(TelegramClient):  # type: ignore[misc] # Telethon has no types
    """As its base class otherwise."""

    async def _update_loop(self) -> None:
        """Take what comes and leave it.

        Telethon has an update made of each message of its own and looks for gaps in their numbers. Where another
        process of the same bot sends, too, there are gaps, and each process fetches by updates.getDifference what all
        the others have sent. There is no option against it; `receive_updates=False` concerns other people's messages.
        Test: test_processes_of_one_bot_do_not_read_what_the_others_sent.
        """
        while True:
            await self._updates_queue.get()
