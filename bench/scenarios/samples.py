"""The bot that is measured, and events for it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from core.queue import QueueClient
from core.redis.store import Store
from core.updates.events import Events

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
