"""A number that a person writes is the press of a button that the last message showed with this number."""

from typing import Any

import pytest

from core.deliveries.received import Choices
from core.model.content import Button
from core.queue import QueueClient
from core.updates.events import REPLIES_TUBE, TUBE, Events, decode, replies_tube
from tests.support.stack import Stack

pytestmark = pytest.mark.parametrize("shards", [16])

NUMBER = "+79990000001"
SMS = {"id": "7", "channel": "sms", "kind": "text", "user_id": NUMBER, "chat_id": NUMBER, "message_id": 3}


@pytest.fixture
async def events(stack: Stack) -> Events:
    choices = Choices(stack.store)
    await choices.remember("default", "sms", [NUMBER], [Button("Сегодня", "today"), Button("Меню")])
    events = Events(QueueClient(stack.store), "default", choices)
    await events.open()
    await QueueClient(stack.store).tubes.create(replies_tube())
    return events


async def put(stack: Stack, events: Events, text: str, **more: Any) -> dict[str, Any]:
    """The event that is in the queue after this one was put."""
    await events.put("gateway", {**SMS, "event_text": text, **more})
    (body,) = await stack.finish_all(TUBE)
    return dict(decode(body))


async def test_a_number_is_the_press_of_its_button_and_names_no_message_to_edit(stack: Stack, events: Events) -> None:
    found = await put(stack, events, " 1. ")
    assert (found["kind"], found["callback_data"], found["event_text"]) == ("callback", "today", " 1. ")
    assert "message_id" not in found


async def test_the_number_of_a_reply_button_is_its_text(stack: Stack, events: Events) -> None:
    found = await put(stack, events, "2")
    assert (found["kind"], found["event_text"], found["message_id"]) == ("text", "Меню", 3)
    assert "callback_data" not in found


async def test_a_number_does_not_answer_another_tenants_message(stack: Stack, events: Events) -> None:
    other = Events(QueueClient(stack.store), "school", Choices(stack.store))
    assert (await put(stack, other, "1"))["kind"] == "text"


@pytest.mark.parametrize(
    ("text", "channel", "pressed"),
    [
        ("1", "vk", None),
        ("отправить ", "vk", "send_reply.7"),
        ("Готово", "vk", "done"),
        ("готово!", "vk", "done"),
        ("+1", "vk", "plus"),
        ("1 пара", "vk", None),
        ("Да", "vk", None),
        ("сегодня", "sms", "today"),
        ("Меню", "sms", None),
        ("Готово", "max", None),
    ],
)
async def test_the_words_of_a_button_mean_its_press(
    stack: Stack, events: Events, text: str, channel: str, pressed: str | None
) -> None:
    shown = {"Отправить": "send_reply.7", "✅ Готово": "done", "+1": "plus", "-1": "minus", "Да": "a", "да": "b"}
    buttons = [Button(label, data) for label, data in shown.items()]
    await Choices(stack.store).remember_buttons("default", "vk", [NUMBER], buttons)
    place = {"channel": channel, "press_meant": "forged"}
    if pressed and pressed.startswith("send_reply"):  # Ada's own question, of which no trigger knows
        await events.put("gateway", {**SMS, "event_text": text, **place})
        (body,) = await stack.finish_all(REPLIES_TUBE)
        assert decode(body)["callback_data"] == pressed
        return
    found = await put(stack, events, text, **place)
    assert (found["kind"], found.get("press_meant")) == ("text", pressed)


@pytest.mark.parametrize(
    ("text", "more"),
    [("3", {}), ("1 пара", {}), ("1", {"chat_id": "+79990000002"}), ("1", {"channel": "vk"}), ("", {})],
)
async def test_everything_else_is_what_it_was(stack: Stack, events: Events, text: str, more: dict[str, Any]) -> None:
    assert await put(stack, events, text, **more) == {**SMS, "event_text": text, "source": "gateway", **more}
