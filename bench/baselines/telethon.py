"""Bare loops over Telethon, to compare the courier with: `python -m bench.baselines.telethon HOW COUNT SIDE_BY_SIDE
FIRST`.

HOW is `message` (client.send_message, as its manual has it, with a session file as usual) or `request` (the request
alone, ready made: the least that Telethon can do).

Signs in as the bot of the ADA_TELEGRAM_… settings and sends one text to COUNT people from number FIRST on. Announces
that it is ready, then the seconds it took, by the clock and of CPU.
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

from bench.delivery.samples import SHORT, address
from cli.processes.supervisor import announce

_DATA_CENTRE = 2


async def loop(how: str, count: int, side_by_side: int, first: int) -> None:
    client = await signed_in(Path.cwd() / f"loop-{first}")
    announce(ready=True)
    people = itertools.islice(itertools.count(first), count)
    began, used = time.monotonic(), time.process_time()
    await asyncio.gather(*(SENDERS[how](client, people) for _ in range(side_by_side)))
    announce(seconds=time.monotonic() - began, cpu=time.process_time() - used)
    await client.disconnect()


async def signed_in(file: Path) -> TelegramClient:
    given = {name.removeprefix("ADA_TELEGRAM_").lower(): value for name, value in os.environ.items()}
    rsa.add_key(given["server_key"], old=False)
    session = SQLiteSession(str(file))
    host, _, port = given["server"].rpartition(":")
    session.set_dc(_DATA_CENTRE, host, int(port))
    client = TelegramClient(session, int(given["api_id"]), given["api_hash"], receive_updates=False)
    await client.connect()
    await client.sign_in(bot_token=given["bot_token"])
    return client


async def send_messages(client: TelegramClient, people: Iterator[int]) -> None:
    """One message after the other, to whoever nobody else has taken."""
    for number in people:
        await client.send_message(peer(number), SHORT)


async def send_requests(client: TelegramClient, people: Iterator[int]) -> None:
    for number in people:
        await client(SendMessageRequest(peer(number), SHORT, random_id=number + 1))


def peer(number: int) -> InputPeerUser:
    return InputPeerUser(int(address("telegram", number)), access_hash=0)


SENDERS = {"message": send_messages, "request": send_requests}


if __name__ == "__main__":
    asyncio.run(loop(sys.argv[1], *(int(word) for word in sys.argv[2:5])))
