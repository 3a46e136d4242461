"""A dialog reads the same of an event, whatever the channel."""

from datetime import UTC, datetime
from typing import Any

import pytest

from bots.dialog_event import DialogEvent, dialog_event
from core.queue import QueueClient
from core.updates.events import decode, dialogs_tube
from couriers.inbound import dialogs_ingress
from tests.support.stack import TENANT, Stack

NOW = int(datetime.now(UTC).timestamp())
ANNA = {"id": 5, "is_bot": False, "first_name": "Anna", "last_name": "Ivanova", "language_code": "en"}
CHAT = {"id": 5, "type": "private"}
MESSAGE = {"message_id": 7, "date": NOW, "chat": CHAT, "from": ANNA}
PHOTO = [{"file_id": "p", "width": 1, "height": 1}]
PRESS = {"id": "9", "from": ANNA, "message": {"message_id": 7, "chat": CHAT}, "data": "yes"}
VK_PHOTO = {"type": "photo", "photo": {"owner_id": 1, "id": 2}}
VK_MESSAGE = {"id": 3, "date": NOW, "from_id": 6, "peer_id": 6, "text": "hello"}


def telegram(**more: Any) -> dict[str, Any]:
    return {"update_id": 1, **more}


def vk(message: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message_new", "event_id": "e", "object": {"message": message}}


def of_telegram(**more: str) -> DialogEvent:
    return DialogEvent("1", "telegram-bot", "5", "Anna Ivanova", "en", **more)


async def read(stack: Stack, channel: str, raw: dict[str, Any]) -> list[DialogEvent]:
    """What a dialog gets of an update."""
    ingress = dialogs_ingress(stack.store, QueueClient(stack.store), TENANT)[channel]
    await ingress.open()
    await ingress.put(raw)
    return [dialog_event(decode(task.body)) for task in await stack.take(dialogs_tube(channel).name, 10)]


@pytest.mark.parametrize(
    ("channel", "raw", "event"),
    [
        ("telegram-bot", telegram(message=MESSAGE | {"text": "hello"}), of_telegram(text="hello")),
        ("telegram-bot", telegram(message=MESSAGE | {"photo": PHOTO, "caption": "hello"}), of_telegram()),
        ("telegram-bot", telegram(message=MESSAGE | {"photo": PHOTO, "media_group_id": "3"}), of_telegram()),
        ("telegram-bot", telegram(callback_query=PRESS), of_telegram(button="yes", message="7", callback="9")),
        ("vk", vk(VK_MESSAGE), DialogEvent("e", "vk", "6", text="hello")),
        ("vk", vk(VK_MESSAGE | {"attachments": [VK_PHOTO]}), DialogEvent("e", "vk", "6", text="hello")),
        ("sms", {"id": "a", "number": "+79990000001", "text": "hello"},
         DialogEvent("a", "sms", "+79990000001", text="hello")),
    ],
    ids=["text", "caption of a photo", "photo of an album", "press", "text in VK", "text beside a file", "SMS"],
)  # fmt: skip
async def test_a_dialog_gets_what_a_person_did_in_private(
    stack: Stack, channel: str, raw: dict[str, Any], event: DialogEvent
) -> None:
    assert await read(stack, channel, raw) == [event]


@pytest.mark.parametrize(
    ("channel", "raw"),
    [
        ("telegram-bot", telegram(message=MESSAGE | {"text": "hello", "chat": {"id": -5, "type": "group"}})),
        ("telegram-bot", telegram(message=MESSAGE | {"text": "hello", "from": ANNA | {"is_bot": True}})),
        ("telegram-bot", telegram(edited_message=MESSAGE | {"text": "hello", "edit_date": NOW})),
        ("telegram-bot", telegram(inline_query={"id": "1", "from": ANNA, "query": "hello"})),
        ("vk", vk(VK_MESSAGE | {"peer_id": 2_000_000_001})),
    ],
    ids=["in a group", "by a bot", "edited", "inline query", "in a chat of VK"],
)
async def test_a_dialog_does_not_get_what_it_does_not_answer(stack: Stack, channel: str, raw: dict[str, Any]) -> None:
    assert await read(stack, channel, raw) == []
