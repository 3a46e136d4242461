"""bench people bot: from an update to the answer of the Telegram bot, at the sandbox's Bot API.

People write /start one after the other at a fixed rate. The time runs from the call that makes a person write until the
sandbox receives the bot's answer: long polling, the queue, the conversation and the sending are all in it.
"""

import asyncio
import time
from collections.abc import Sequence

from aiohttp import ClientSession

from bench.harness.child_process import ChildProcess
from bench.harness.environment import Environment, environment
from bench.harness.measurements import latency_columns
from bench.harness.process_cost import cpu_seconds
from bench.harness.report import Row, Rows, report_target
from bench.people.sizes import Sizes
from cli.command import CommandFailed

P99_MS = 30.0
FIRST_PERSON, WARM_UP = 100_001, 20
_TIMEOUT = 30.0


async def measure(sizes: Sizes, rows: Rows) -> None:
    async with environment() as env:
        page, bot = await start_bot(env)
        async with ClientSession(page, raise_for_status=True) as sandbox:
            await answers_to(sandbox, range(FIRST_PERSON, FIRST_PERSON + WARM_UP), sizes.per_second)
            first = FIRST_PERSON + WARM_UP
            people = range(first, first + sizes.updates)
            before = cpu_seconds(bot.pid), cpu_seconds(env.server.pid)
            waits = await answers_to(sandbox, people, sizes.per_second)
            after = cpu_seconds(bot.pid), cpu_seconds(env.server.pid)
    columns = latency_columns("answer", waits)
    known: Row = {"part": "bot", "channel": "telegram", "n": len(waits), "updates_per_s": sizes.per_second}
    used = [round((late - early) / len(waits) * 1e6) for early, late in zip(before, after, strict=True)]
    rows.show({**known, **columns, "bot_us": used[0], "server_us": used[1]})
    p99 = float(columns["answer_p99_ms"] or 0)
    report_target("from an update to the answer, p99 ms", p99, f"≤ {P99_MS:g}", p99 <= P99_MS)


async def start_bot(env: Environment) -> tuple[str, ChildProcess]:
    """Starts the sandbox and the bot; returns the address of the sandbox's page, and the bot."""
    _, facts = await env.start_command("sandbox", "--json")
    env.variables |= facts["environment"]
    bot, _ = await env.start_command("bot", "telegram")
    return str(facts["page"]), bot


async def answers_to(
    sandbox: ClientSession, people: Sequence[int], per_second: float, text: str = "/start", answer: str = ""
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
