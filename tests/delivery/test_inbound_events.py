"""With scenarios, what gateways and providers post becomes events, each once."""

import logging
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from core.deliveries.received import Choices
from core.model.content import Button
from core.queue import QueueClient
from core.redis.store import Store
from core.updates.events import TUBE, decode
from couriers.inbound import events_ingress
from couriers.telegram_bot import CHANNEL
from couriers.telegram_bot.events import ALLOWED
from delivery.http.context import ApiServices
from tests.delivery.conftest import Api
from tests.delivery.test_inbound import EVENT, SMS, WITHOUT_KEY, options

__all__ = ["options"]

UPDATE: dict[str, Any] = {
    "update_id": 7,
    "message": {
        "message_id": 1,
        "date": 4_000_000_000,
        "text": "/start",
        "chat": {"id": 100001, "type": "private"},
        "from": {"id": 100001, "is_bot": False, "first_name": "Анна"},
    },
}
PRESS = {
    "update_id": 8,
    "callback_query": {"id": "9", "from": UPDATE["message"]["from"], "message": UPDATE["message"], "data": "да"},
}


@pytest.fixture
async def services(services: ApiServices, store: Store) -> ApiServices:
    return replace(services, ingress=events_ingress(store, QueueClient(store), "default"))


async def events(api: Api, tube: str = TUBE) -> list[dict[str, Any]]:
    """The events in the queue, in any order."""
    found = await api.call("GET", f"/v1/queue/tasks?tube={tube}")
    return [dict(decode(task["body"])) for task in found.json["tasks"]]


async def post_telegram(api: Api, update: object) -> int:
    headers = {**WITHOUT_KEY, "X-Telegram-Bot-Api-Secret-Token": "tg"}
    return (await api.call("POST", "/v1/inbound/telegram", update, headers=headers)).status


async def test_an_update_of_the_webhook_is_one_event(api: Api) -> None:
    assert [await post_telegram(api, UPDATE) for _ in range(2)] == [200, 200]
    (event,) = await events(api)
    assert (event["channel"], event["user_id"], event["event_text"]) == (CHANNEL, 100001, "/start")


async def test_a_press_that_comes_by_webhook_is_an_event_with_the_id_by_which_it_is_answered(api: Api) -> None:
    assert await post_telegram(api, PRESS) == 200
    assert [(event["callback_data"], event["callback_id"]) for event in await events(api)] == [("да", "9")]


ANNA = UPDATE["message"]["from"]
GROUP = {"id": -1001, "type": "supergroup", "title": "Клуб"}
CHANGE = {"chat": GROUP, "from": ANNA, "date": 4_000_000_000, "new_chat_member": {"user": ANNA, "status": "left"}}


@pytest.mark.parametrize(
    ("content", "kind", "tube"),
    [
        ({"edited_message": {**UPDATE["message"], "edit_date": 4_000_000_001}}, "edited", TUBE),
        ({"inline_query": {"id": "5", "from": ANNA, "query": "fish", "offset": ""}}, "inline_query", TUBE),
        ({"chat_join_request": {"chat": GROUP, "from": ANNA, "date": 4_000_000_000}}, "join_request", TUBE),
        (
            {"chat_member": {**CHANGE, "old_chat_member": {"user": ANNA, "status": "member"}}},
            "left_member",
            "events.parts",
        ),
    ],
)
async def test_edits_inline_queries_requests_to_join_and_departures_come_by_webhook(
    api: Api, content: dict[str, Any], kind: str, tube: str
) -> None:
    assert next(iter(content)) in ALLOWED
    assert await post_telegram(api, {"update_id": 9, **content}) == 200
    (found,) = await events(api, tube)
    assert tube != TUBE or (found["kind"], found["user_id"]) == (kind, 100001)
    assert tube == TUBE or found["name"] == "left.-1001.100001"


async def test_an_album_that_comes_by_webhook_waits_for_its_photos(api: Api) -> None:
    photo = {"photo": [{"file_id": "f", "width": 9, "height": 9}], "media_group_id": "5"}
    for number in (1, 2):
        message = {**UPDATE["message"], **photo, "message_id": number}
        assert await post_telegram(api, {"update_id": number, "message": message}) == 200
    assert await events(api) == []
    assert len(await events(api, "events.parts")) == 2


@pytest.mark.parametrize("update", [{"update_id": 1}, {"update_id": 1, "message": {"text": "nobody"}}, {}])
async def test_an_update_that_is_no_event_is_acknowledged_with_one_log_line(
    api: Api, update: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "delivery")
    assert await post_telegram(api, update) == 200
    assert await events(api) == []
    assert len([line for line in caplog.messages if "is ignored" in line]) == 1


@pytest.mark.parametrize("half", [{"text": "half \ud83d"}, {"media_group_id": "half \ud83d"}])
async def test_an_update_with_half_a_surrogate_pair_is_acknowledged_with_one_log_line(
    api: Api, half: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise Telegram posts it for ever, and none that came after it."""
    assert await post_telegram(api, {**UPDATE, "message": {**UPDATE["message"], **half}}) == 200
    assert await events(api) == []
    assert len([line for line in caplog.messages if "is ignored" in line]) == 1


async def test_a_callback_of_vk_with_half_a_surrogate_pair_is_acknowledged_with_one_log_line(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    message = {**EVENT["object"]["message"], "date": 4_000_000_000, "conversation_message_id": 1, "text": "\ud83d"}
    response = await api.call("POST", "/v1/inbound/vk", {**EVENT, "object": {"message": message}}, headers=WITHOUT_KEY)
    assert (response.status, response.body) == (200, b"ok")
    assert await events(api) == []
    assert len([line for line in caplog.messages if "is ignored: EVENT_MALFORMED" in line]) == 1


async def test_a_callback_of_vk_is_one_event(api: Api) -> None:
    message = {**EVENT["object"]["message"], "date": 4_000_000_000, "conversation_message_id": 1}
    posted = {**EVENT, "object": {"message": message}}
    for _ in range(2):
        response = await api.call("POST", "/v1/inbound/vk", posted, headers=WITHOUT_KEY)
        assert (response.status, response.body) == (200, b"ok")
    (event,) = await events(api)
    assert (event["channel"], event["user_id"], event["event_text"]) == ("vk", 200001, "/help")


async def test_an_sms_is_one_event_and_the_number_of_a_choice_a_press(api: Api, store: Store) -> None:
    await Choices(store).remember(
        "default", "sms", ["+79990000001"], [Button("Сегодня", "today"), Button("Завтра", "tomorrow")]
    )
    for changed in ({}, {}, {"id": "b2", "text": "2"}):
        response = await api.call("GET", f"/v1/inbound/sms?{urlencode(SMS | changed)}", headers=WITHOUT_KEY)
        assert response.status == 200
    found = {event["kind"]: event for event in await events(api)}
    assert found["text"]["event_text"] == SMS["text"]
    assert found["callback"]["callback_data"] == "tomorrow"
    assert {event["user_id"] for event in found.values()} == {"+79990000001"}
