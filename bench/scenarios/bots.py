"""The bots that are measured, and people who write to them in the sandbox's Telegram."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession

from bench.harness.environment import START_TIMEOUT, ChildProcess, Environment, environment
from cli.command import CommandFailed
from core.queue import QueueClient
from core.redis.store import Store
from core.updates.events import Events


@dataclass(frozen=True, slots=True)
class BotSizes:
    """`updates`: people who write in one round, so that the bot sends `messages_per_second`. `backlog`: updates that
    wait when a rate begins. `runs`: events whose commands are counted; `stored`: runs that are stored meanwhile.
    `waiting`: runs that wait; `seconds`: how long their cost is measured.
    """

    updates: int = 200
    messages_per_second: float = 20.0
    rounds: int = 2
    backlog: int = 2_000
    runs: int = 500
    stored: int = 10_000
    waiting: int = 10_000
    seconds: float = 20.0


FULL = BotSizes()
SHORT = BotSizes(
    updates=20, messages_per_second=40.0, rounds=1, backlog=50, runs=50, stored=100, waiting=50, seconds=1.0
)

CHANNEL = "telegram-bot"
LONG_CHAIN = 11
"""Steps of the longer of two chains that are compared; the shorter one has one."""

_PLAIN = "    - {type: validator, rules: {event_text: [{rule: not_empty}]}, chain: any}\n"
_SEND = "    - {{type: send, text: {text!r}, chain: any}}\n"

TRIGGERS = """\
text:
  exact: {one: b.one, five: b.five, step: b.step, chain: b.chain}
"""


def scenario(name: str, actions: Iterable[str]) -> str:
    return f"{name}:\n  actions:\n{''.join(actions)}"


SCENARIOS = "\n".join(
    [
        scenario("one", [_SEND.format(text="1")]),
        scenario("five", [_SEND.format(text=str(number)) for number in range(1, 6)]),
        scenario("step", [_PLAIN]),
        scenario("chain", [_PLAIN] * LONG_CHAIN),
    ]
)


def write_bot(folder: Path) -> Path:
    """Writes the bot into a new folder; returns it."""
    (folder / "scenarios").mkdir(parents=True)
    (folder / "triggers.yaml").write_text(TRIGGERS)
    (folder / "scenarios" / "b.yaml").write_text(SCENARIOS)
    return folder


def event(number: int, text: str, channel: str = CHANNEL) -> dict[str, Any]:
    """Return a text of person `number`."""
    person = 100_000 + number
    about = {"user_id": person, "chat_id": person, "chat_type": "private", "first_name": "Anna"}
    return {"id": f"{text}.{number}", "channel": channel, "kind": "text", "event_text": text, **about}


async def put_events(store: Store, first: int, count: int, text: str, channel: str = CHANNEL) -> None:
    """Puts events of `count` people."""
    client = QueueClient(store)
    events = Events(client, "default")
    await events.open()
    for number in range(first, first + count):
        await events.put("bench", event(number, text, channel))
    await client.close()


AIOGRAM, ADA = "bare aiogram", "ada"
SYSTEMS = (AIOGRAM, ADA)

_PROCESSES = (("courier", "telegram-bot"), ("scenarios",), ("bot", "telegram"))
"""The last one gets the updates."""


@asynccontextmanager
async def bench_environment() -> AsyncIterator[Environment]:
    """Start a server, with the folder of the bot in the settings of all processes."""
    async with environment() as env:
        env.variables["ADA_SCENARIOS"] = str(write_bot(env.directory / "bot"))
        yield env


async def start_sandbox(env: Environment) -> str:
    """Starts the sandbox; returns the address of its page."""
    _, facts = await env.start_command("sandbox", "--json")
    env.variables |= facts["environment"]
    return str(facts["page"])


@asynccontextmanager
async def running(env: Environment, system: str) -> AsyncIterator[Sequence[ChildProcess]]:
    """Starts a system, yields its processes when they are ready, stops them."""
    children = [await _start_aiogram(env)] if system == AIOGRAM else await start_ada(env)
    try:
        yield children
    finally:
        for child in reversed(children):
            await env.stop_child(child)


async def start_ada(env: Environment) -> list[ChildProcess]:
    """Start the processes of a bot, and return them when they are ready."""
    return [(await env.start_command(*args))[0] for args in _PROCESSES]


async def _start_aiogram(env: Environment) -> ChildProcess:
    child = await env.start("aiogram", "bench.scenarios.aiogram_bot")
    await child.facts(START_TIMEOUT)
    return child


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
