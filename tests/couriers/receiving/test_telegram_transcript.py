"""What a bot sends to the Bot API to get updates and to answer, and what follows, as in the transcript."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from core.updates.bot_calls import PressAnswer, TypingMark
from couriers.receiving.poller import Poller
from couriers.telegram_bot.client import BotClient
from couriers.telegram_bot.courier import Settings
from couriers.telegram_bot.receive import TelegramCalls, TelegramLongPoll, open_receiver
from tests.couriers.bot_api_relay import Relay
from tests.couriers.bot_api_transcript import ANSWERS, MESSAGE, answer, compare, relay, what_came
from tests.support.waiting import until

__all__ = ["relay"]

ANNA = "100002"


@pytest.fixture
async def client(relay: Relay) -> AsyncIterator[BotClient]:
    client = BotClient(relay.server.token, relay.url)
    yield client
    await client.close()


@dataclass
class Kept:
    """Where updates go."""

    updates: list[Any] = field(default_factory=list)

    async def put(self, update: Mapping[str, Any]) -> bool:
        self.updates.append(dict(update))
        return "callback_query" not in update


class Held:
    """The lease of the only poller."""

    def want(self, account: str) -> None: ...

    def give_up(self) -> None: ...

    async def acquire(self) -> None: ...

    async def wait_until_lost(self) -> None:
        await asyncio.Event().wait()


def poller(client: BotClient, kept: Any) -> Poller:
    """A poller that has begun."""
    source = TelegramLongPoll(client)
    source._may_have_webhook = False
    store: Any = SimpleNamespace(faults={})
    return Poller(store, source, kept, Held(), keeps_position=True)  # type: ignore[arg-type]


UPDATE: dict[str, Any] = {"update_id": 5, "message": {**MESSAGE, "from": {"id": 5, "is_bot": False, "first_name": "A"}}}
MALFORMED: dict[str, Any] = {
    "update_id": 6,
    "message": {"message_id": "x", "date": [], "chat": None, "entities": [{"type": 1}]},
}
UNKNOWN = {"update_id": 7, "some_new_kind": {"id": 1}}


async def test_updates_are_got_and_confirmed_whatever_is_answered(
    relay: Relay, client: BotClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    faults = ("throttled for nothing", "conflict", "bad gateway", "cut", "page")
    played = {}
    for name in (*faults, "token withdrawn", "no such bot"):
        kept = Kept()
        polling = poller(client, kept)
        relay.answers.append(ANSWERS[name])
        for update in (UPDATE, MALFORMED, UNKNOWN):
            relay.answers.append(answer({"ok": True, "result": [update]}))
        relay.answers.append(answer({"ok": True, "result": []}))
        running = asyncio.create_task(polling.run())
        await until(lambda: running.done() or len(relay.calls) >= 6, within=20)  # noqa: B023 - it ends in this round
        ended = type(running.exception()).__name__ if running.done() else "goes on"
        await _end(running)
        relay.answers.clear()
        played[name] = [relay.received()[:6], kept.updates, ended]
    compare("polling", played, relay.server.token, caplog)


async def test_an_update_without_a_number_keeps_no_other_back(relay: Relay, client: BotClient) -> None:
    kept = Kept()
    polling = poller(client, kept)
    relay.answers.append(answer({"ok": True, "result": [{"message": {}}, "x", UPDATE, MALFORMED]}))
    running = asyncio.create_task(polling.run())
    await until(lambda: kept.updates == [UPDATE, MALFORMED])
    await until(lambda: len(relay.calls) == 2)
    await _end(running)
    assert relay.calls[1][1]["offset"] == str(MALFORMED["update_id"] + 1)


async def _begin(relay: Relay, **webhook: Any) -> str:
    receiver = open_receiver(Settings(relay.server.token, relay.url, **webhook), polls=False)
    assert receiver.begin
    try:
        return await receiver.begin()
    finally:
        await receiver.close()


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_bot_makes_calls_and_begins(relay: Relay, client: BotClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    calls = TelegramCalls(client)
    made: dict[str, Callable[[], Awaitable[Any]]] = {
        "typing": lambda: calls.make(TypingMark(int(ANNA))),
        "silent answer": lambda: calls.make(PressAnswer("q", 5, 5)),
        "answer": lambda: calls.make(PressAnswer("q", 5, 5, "да", True)),
    }
    played = {name: [await what_came(make()), relay.received()][::-1] for name, make in made.items()}
    for name in (*(one for one in ANSWERS if not one.startswith("sent")), "sent"):
        relay.answers.append(ANSWERS[name])
        played[f"answer: {name}"] = [await what_came(made["answer"]())]
        relay.answers.clear()
    relay.received()
    webhook = {"webhook_url": "https://ada.example.org/", "webhook_secret": "a-secret"}
    starts: dict[str, dict[str, str]] = {"polling": {}, "webhook": webhook}
    for name, way in starts.items():
        account = await _begin(relay, **way)
        played[f"start with {name}"] = [relay.received(), account]
    for name, answered in ANSWERS.items():
        relay.answers.append(answered)
        played[f"start: {name}"] = [await what_came(_begin(relay))]
        relay.answers.clear()
    compare("bots", played, relay.server.token, caplog)
