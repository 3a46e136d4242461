"""An event is put once, in the lane of its person, and only if scenarios can use it."""

from typing import Any

import pytest

from core.errors import Invalid
from core.queue import QueueClient
from core.updates.events import MAX_BYTES, TUBE, Events, decode, identity
from tests.support.stack import Stack

pytestmark = pytest.mark.parametrize("shards", [16])

TEXT = {"id": "7", "channel": "telegram-bot", "kind": "text", "user_id": 5, "chat_id": 5, "event_text": "привет"}


@pytest.fixture
async def events(stack: Stack) -> Events:
    events = Events(QueueClient(stack.store), "default")
    await events.open()
    return events


async def test_the_same_event_is_put_once(stack: Stack, events: Events) -> None:
    assert await events.put("bot", TEXT)
    assert not await events.put("bot", TEXT)
    bodies = await stack.finish_all(TUBE)
    assert not await events.put("bot", TEXT), "an event that was processed is still known"
    assert [decode(body) for body in bodies] == [{**TEXT, "source": "bot"}]


async def test_equal_ids_of_another_channel_or_source_are_other_events(stack: Stack, events: Events) -> None:
    for source, channel in (("a", "vk"), ("b", "vk"), ("a", "sms")):
        assert await events.put(source, {**TEXT, "channel": channel})
    found = [decode(body) for body in await stack.finish_all(TUBE)]
    assert {identity("default", event) for event in found} == {"vk.a.7", "vk.b.7", "sms.a.7"}


async def test_tenants_share_neither_ids_nor_lanes(stack: Stack, events: Events) -> None:
    for other in (events, Events(QueueClient(stack.store), "school")):
        assert await other.put("@api", TEXT)
        assert not await other.put("@api", TEXT)
    tasks = await stack.take(TUBE, 10)
    lanes = {("default", "telegram-bot:5"), ("school", "school/telegram-bot:5")}
    assert {(task.tenant, task.lane) for task in tasks} == lanes
    assert len({identity(task.tenant, decode(task.body)) for task in tasks}) == 2


async def test_events_of_a_person_wait_for_each_other_but_not_in_another_chat(stack: Stack, events: Events) -> None:
    group: dict[str, Any] = {"chat_id": -9, "chat_type": "supergroup"}
    for number, more in enumerate(({}, {}, group, {"user_id": 6})):
        await events.put("bot", {**TEXT, "id": str(number), **more})
    tasks = await stack.take(TUBE, 10)
    assert {task.lane for task in tasks} == {"telegram-bot:5", "telegram-bot:-9:5", "telegram-bot:6"}
    assert {task.user for task in tasks} == {"telegram-bot:5", "telegram-bot:6"}


@pytest.mark.parametrize(
    ("more", "kind"),
    [({}, "text"), ({"callback_data": ""}, "callback"), ({"joined_user_ids": [6]}, "new_member")],
)
async def test_the_kind_is_read_from_the_fields(stack: Stack, events: Events, more: dict[str, Any], kind: str) -> None:
    await events.put("bot", {**{name: value for name, value in TEXT.items() if name != "kind"}, **more})
    (body,) = await stack.finish_all(TUBE)
    assert decode(body)["kind"] == kind


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"kind": "poll"}, "EVENT_KIND_UNKNOWN"),
        ({"user_id": None}, "EVENT_WITHOUT_USER"),
        ({"user_id": True}, "EVENT_WITHOUT_USER"),
        ({"id": ""}, "EVENT_ID_MALFORMED"),
        ({"id": "a b"}, "EVENT_ID_MALFORMED"),
        ({"channel": "Telegram"}, "EVENT_CHANNEL_MALFORMED"),
        ({"attachments": {"type": "photo"}}, "EVENT_ATTACHMENTS_MALFORMED"),
        ({"attachments": [{"file_id": "f"}]}, "EVENT_ATTACHMENTS_MALFORMED"),
        ({"event_text": "я" * MAX_BYTES}, "EVENT_TOO_LARGE"),
        ({"event_text": "\ud800"}, "EVENT_MALFORMED"),
    ],
)
async def test_what_scenarios_cannot_use_is_refused_and_nothing_is_put(
    stack: Stack, events: Events, wrong: dict[str, Any], code: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        await events.put("bot", {**TEXT, **wrong})
    assert refusal.value.code == code
    assert await stack.finish_all(TUBE) == []
