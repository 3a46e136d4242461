"""A bare loop over Telethon, to compare the courier with: `python -m bench.telethon_loop COUNT SIDE_BY_SIDE FIRST`.

Signs in as the bot of the ADA_TELEGRAM_… settings and sends one text to COUNT people from number FIRST on. Announces
that it is ready, then the seconds it took.
"""

import asyncio
import itertools
import os
import sys
import time
from collections.abc import Iterator

from telethon import TelegramClient
from telethon.crypto import rsa
from telethon.sessions import MemorySession
from telethon.tl.functions.messages import SendMessageRequest
from telethon.tl.types import InputPeerUser

from bench.samples import SHORT, address
from cli.processes import announce

_DATA_CENTRE = 2


async def loop(count: int, side_by_side: int, first: int) -> None:
    client = await signed_in()
    announce(ready=True)
    people = itertools.islice(itertools.count(first), count)
    began = time.monotonic()
    await asyncio.gather(*(send(client, people) for _ in range(side_by_side)))
    announce(seconds=time.monotonic() - began)
    await client.disconnect()


async def signed_in() -> TelegramClient:
    given = {name.removeprefix("ADA_TELEGRAM_").lower(): value for name, value in os.environ.items()}
    rsa.add_key(given["server_key"], old=False)
    session = MemorySession()
    host, _, port = given["server"].rpartition(":")
    session.set_dc(_DATA_CENTRE, host, int(port))
    client = TelegramClient(session, int(given["api_id"]), given["api_hash"], receive_updates=False)
    await client.connect()
    await client.sign_in(bot_token=given["bot_token"])
    return client


async def send(client: TelegramClient, people: Iterator[int]) -> None:
    """One message after the other, to whoever nobody else has taken."""
    for number in people:
        peer = InputPeerUser(int(address("telegram", number)), access_hash=0)
        await client(SendMessageRequest(peer, SHORT, random_id=number + 1))


if __name__ == "__main__":
    asyncio.run(loop(*(int(word) for word in sys.argv[1:4])))
