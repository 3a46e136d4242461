"""People who write to a bot in the sandbox's Telegram, and how long they wait for its reply."""

import asyncio
import time
from collections.abc import Sequence

from aiohttp import ClientSession

from cli.command import CommandFailed

_TIMEOUT = 30.0


async def answers_to(
    sandbox: ClientSession, people: Sequence[int], per_second: float, text: str, answer: str = ""
) -> list[float]:
    """Write `text` as each person; return the ms until each was answered, with the text `answer` if one is given.
    Raises CommandFailed if one is not answered.
    """
    began: dict[str, float] = {}
    next_at = time.time()
    for person in people:
        await asyncio.sleep(next_at - time.time())
        next_at = max(next_at, time.time()) + 1 / per_second
        began[str(person)] = time.time()
        async with sandbox.post("/write/telegram-bot", json={"address": person, "text": text}):
            pass
    deadline = time.monotonic() + _TIMEOUT
    while len(answered := await first_answers(sandbox, began, answer)) < len(began):
        if time.monotonic() > deadline:
            raise CommandFailed(f"the bot answered {len(answered)} of {len(began)} people")
        await asyncio.sleep(0.1)
    return [(answered[person] - moment) * 1000 for person, moment in began.items()]


async def first_answers(sandbox: ClientSession, people: dict[str, float], answer: str = "") -> dict[str, float]:
    """Return person → moment of the first message of the bot (Unix s), for people that have one. `answer`: its text, if
    only that one counts.
    """
    query = {"channel": "telegram-bot", "limit": "10000"}
    async with sandbox.get("/inbox.json", params=query) as response:
        messages = (await response.json())["messages"]
    found: dict[str, float] = {}
    for message in messages:
        if message["address"] in people and answer in ("", message["text"]):
            found.setdefault(message["address"], message["at"])
    return found
