"""The way in of a provider's updates: what is repeated after a crash between two writes is completed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.queue import QueueClient
from core.updates.bot_calls import BotCalls
from core.updates.events import TUBE
from core.updates.ingress import Ingress
from couriers.inbound import events_ingress
from couriers.telegram_bot import CHANNEL
from tests.support.stack import Stack

PERSON = {"id": 5, "is_bot": False, "first_name": "Anna"}
CHAT = {"id": 5, "type": "private"}


def written(number: int, **more: Any) -> dict[str, Any]:
    """An update of this moment."""
    now = int(datetime.now(UTC).timestamp())
    return {"update_id": number, "message": {"message_id": 1, "date": now, "chat": CHAT, "from": PERSON, **more}}


async def events_of(stack: Stack, tenant: str) -> Ingress:
    ingress = events_ingress(stack.store, QueueClient(stack.store), tenant)[CHANNEL]
    await ingress.open()
    return ingress


async def test_a_press_that_waited_for_half_a_minute_is_not_answered_any_more(stack: Stack) -> None:
    calls = BotCalls(QueueClient(stack.store), "university", CHANNEL)
    await calls.open()
    await calls.answer_press({"channel": CHANNEL, "callback_id": "9", "user_id": 5, "chat_id": 5})
    stack.advance_clock(timedelta(seconds=31))
    await stack.tick()
    assert await stack.finish_all(f"bot_calls.{CHANNEL}") == []


async def test_equal_ids_of_the_bots_of_two_tenants_are_different_events(stack: Stack) -> None:
    for tenant in ("university", "school"):
        await (await events_of(stack, tenant)).put(written(1, text="hello"))
    assert len(await stack.finish_all(TUBE)) == 2


@pytest.mark.parametrize("text", ["half \ud83d", "x" * 200_000])
async def test_what_cannot_be_stored_is_logged_and_not_raised(
    stack: Stack, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    ingress = await events_of(stack, "university")
    assert await ingress.put(written(1, text=text))
    assert len([line for line in caplog.messages if "update '1' of telegram-bot is ignored: EVENT_" in line]) == 1
