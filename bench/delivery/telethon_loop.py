"""Bare loops over Telethon, to compare the courier with.

`python -m bench.delivery.telethon_loop HOW COUNT CONCURRENCY FIRST`. HOW is `message` (client.send_message, with
the usual session file) or `request` (only the prepared request, the least that Telethon can do).

Signs in as the bot of the ADA_TELEGRAM_… settings and sends one text to COUNT recipients, starting with number FIRST.
Announces that it is ready, then the seconds it took and the CPU seconds.
"""

import asyncio
import itertools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from telethon import TelegramClient
from telethon.crypto import rsa
from telethon.sessions import SQLiteSession
from telethon.tl.functions.messages import SendMessageRequest
from telethon.tl.types import InputPeerUser

from bench.harness.delivery_samples import TEXT, address
from cli.processes.supervisor import announce

_DATA_CENTRE = 2


async def loop(how: str, count: int, concurrency: int, first: int) -> None:
    client = await sign_in(Path.cwd() / f"loop-{first}")
    announce(ready=True)
    numbers = itertools.islice(itertools.count(first), count)
    began, used = time.monotonic(), time.process_time()
    await asyncio.gather(*(SENDERS[how](client, numbers) for _ in range(concurrency)))
    announce(seconds=time.monotonic() - began, cpu=time.process_time() - used)
    await client.disconnect()


async def sign_in(file: Path) -> TelegramClient:
    settings = {name.removeprefix("ADA_TELEGRAM_").lower(): value for name, value in os.environ.items()}
    rsa.add_key(settings["server_key"], old=False)
    session = SQLiteSession(str(file))
    host, _, port = settings["server"].rpartition(":")
    session.set_dc(_DATA_CENTRE, host, int(port))
    client = TelegramClient(session, int(settings["api_id"]), settings["api_hash"], receive_updates=False)
    await client.connect()
    await client.sign_in(bot_token=settings["bot_token"])
    return client


async def send_messages(client: TelegramClient, numbers: Iterator[int]) -> None:
    """Sends one message after the other; the senders share the iterator."""
    for number in numbers:
        await client.send_message(peer(number), TEXT)


async def send_requests(client: TelegramClient, numbers: Iterator[int]) -> None:
    for number in numbers:
        await client(SendMessageRequest(peer(number), TEXT, random_id=number + 1))


def peer(number: int) -> InputPeerUser:
    return InputPeerUser(int(address("telegram", number)), access_hash=0)


SENDERS = {"message": send_messages, "request": send_requests}


if __name__ == "__main__":
    asyncio.run(loop(sys.argv[1], *(int(word) for word in sys.argv[2:5])))
