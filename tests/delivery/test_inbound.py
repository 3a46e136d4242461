"""Gateways and VK post what people write: each message becomes one update, and only with the right secret."""

import time
from typing import Any
from urllib.parse import quote, quote_from_bytes, urlencode

import pytest

from core.updates.events import TUBE, Event, decode
from delivery.http.options import Inbound, Options
from tests.delivery.conftest import Api, ApiResponse

WITHOUT_KEY = {"Authorization": ""}
SECRET = "a secret of the gateway"
SMS = {
    "secret": SECRET,
    "from": "79990000001",
    "to": "79000000000",
    "text": "ИВТ-101 Пары не будет",
    "time": "2026-11-22 06:02:45",
    "id": "b1",
    "smsc": "fake",
    "charset": "UTF-8",
}
NOW = int(time.time())
EVENT: dict[str, Any] = {
    "type": "message_new",
    "event_id": "e1",
    "group_id": 1,
    "secret": "vk",
    "object": {"message": {"id": 5, "date": NOW, "from_id": 200001, "peer_id": 200001, "text": "/help"}},
}


@pytest.fixture
def options() -> Options:
    return Options(inbound=Inbound({"sms": SECRET, "vk": "vk", "telegram-bot": "tg"}, {"vk": "f1a2b3c4"}))


async def get(api: Api, **changed: str) -> ApiResponse:
    return await api.call("GET", f"/v1/inbound/sms?{urlencode(SMS | changed)}", headers=WITHOUT_KEY)


async def post(api: Api, event: object) -> ApiResponse:
    return await api.call("POST", "/v1/inbound/vk", event, headers=WITHOUT_KEY)


async def events(api: Api, channel: str = "sms") -> list[Event]:
    """The events in the queue, in any order."""
    found = await api.call("GET", f"/v1/queue/tasks?tube={TUBE}")
    put = [decode(task["body"]) for task in found.json["tasks"]]
    return [event for event in put if event["channel"] == channel]


def shown(event: Event) -> tuple[str, str, str]:
    """The id of an event, its person, and what was written."""
    return event["id"], str(event["user_id"]), event["event_text"]


async def test_an_sms_becomes_an_event_of_its_number_and_the_response_is_empty(api: Api) -> None:
    response = await get(api)
    assert (response.status, response.body) == (200, b"")
    (event,) = await events(api)
    assert (event["channel"], event["user_id"], event["event_text"]) == ("sms", "+79990000001", "ИВТ-101 Пары не будет")


async def test_an_sms_may_be_posted_as_a_form(api: Api) -> None:
    response = await api.call("POST", "/v1/inbound/sms", data=SMS, headers=WITHOUT_KEY)
    assert response.status == 200
    assert [event["event_text"] for event in await events(api)] == [SMS["text"]]


async def test_the_same_sms_received_twice_is_one(api: Api) -> None:
    for _ in range(2):
        assert (await get(api)).status == 200
    assert len(await events(api)) == 1
    await get(api, id="b2")
    assert len(await events(api)) == 2


async def test_two_sms_centres_may_give_two_sms_the_same_id(api: Api) -> None:
    await get(api, smsc="first", text="a")
    await get(api, smsc="second", text="b")
    await get(api, smsc="second", text="b")
    assert sorted(update["event_text"] for update in await events(api)) == ["a", "b"]


async def test_without_an_id_two_sms_differ_by_sender_receiver_time_or_text(api: Api) -> None:
    others = {"time": "2026-11-22 06:02:46"}, {"text": "b"}, {"from": "79990000002"}, {"to": "79000000001"}
    for changed in ({}, {}, *others):
        await get(api, **{"id": "", **changed})
    assert len(await events(api)) == 1 + len(others)


@pytest.mark.parametrize(
    ("charset", "encoded"),
    [
        ("UTF-8", "Звонок € 😀".encode()),
        ("UTF-16BE", "Звонок € 😀".encode("utf-16-be")),
        ("no-such-charset", "Звонок € 😀".encode()),
    ],
)
async def test_the_text_is_read_in_the_charset_of_the_gateway(api: Api, charset: str, encoded: bytes) -> None:
    rest = urlencode({**SMS, "text": "", "charset": charset}).replace("text=&", "")
    url = f"/v1/inbound/sms?{rest}&text={quote_from_bytes(encoded)}"
    assert (await api.call("GET", url, headers=WITHOUT_KEY)).status == 200
    assert [event["event_text"] for event in await events(api)] == ["Звонок € 😀"]


@pytest.mark.parametrize(
    ("charset", "half"), [("UTF-8", "%ED%A0%BD"), ("UTF-16BE", "%D8%3D"), ("UTF-16BE", "%D8%3D%00a")]
)
async def test_half_a_surrogate_pair_in_an_sms_is_read_as_a_replacement_character(
    api: Api, charset: str, half: str
) -> None:
    rest = urlencode({**SMS, "text": "", "charset": charset}).replace("text=&", "")
    assert (await api.call("GET", f"/v1/inbound/sms?{rest}&text={half}", headers=WITHOUT_KEY)).status == 200
    (event,) = await events(api)
    assert "\ufffd" in event["event_text"]


@pytest.mark.parametrize("sender", ["79000000000", "+79000000000", "900", "Sberbank", "1234567"])
async def test_an_sms_of_a_service_or_of_our_own_number_is_ignored(api: Api, sender: str) -> None:
    assert (await get(api, **{"from": sender})).status == 200
    assert await events(api) == []


async def test_a_foreign_number_without_a_plus_is_a_telephone(api: Api) -> None:
    await get(api, **{"from": "491701234567"})
    assert [update["user_id"] for update in await events(api)] == ["+491701234567"]


@pytest.mark.parametrize("secret", ["", "wrong", "секрет"])
async def test_a_wrong_secret_is_refused_and_stores_nothing(api: Api, secret: str) -> None:
    before = await api.keys()
    assert (await get(api, secret=secret)).code == "INBOUND_SECRET_WRONG"
    refused = await post(api, {**EVENT, "secret": secret})
    assert (refused.status, refused.code) == (403, "INBOUND_SECRET_WRONG")
    assert (await post(api, {**EVENT, "type": "confirmation", "secret": secret})).code == "INBOUND_SECRET_WRONG"
    assert await api.keys() == before


async def test_an_sms_without_a_sender_is_refused(api: Api) -> None:
    url = f"/v1/inbound/sms?secret={quote(SECRET)}&text=hello"
    refused = await api.call("GET", url, headers=WITHOUT_KEY)
    assert (refused.status, refused.code) == (400, "REQUIRED")


async def test_vk_gets_the_confirmation_of_the_address(api: Api) -> None:
    response = await post(api, {"type": "confirmation", "group_id": 1, "secret": "vk"})
    assert (response.status, response.body) == (200, b"f1a2b3c4")


async def test_an_event_of_vk_that_is_repeated_becomes_one_event(api: Api) -> None:
    for _ in range(2):
        response = await post(api, EVENT)
        assert (response.status, response.body) == (200, b"ok")
    assert [shown(event) for event in await events(api, "vk")] == [("e1", "200001", "/help")]


@pytest.mark.parametrize(
    "changed",
    [
        {"type": "message_reply"},
        {"object": None},
        {"object": {"message": {"text": "without a sender"}}},
        {"object": {"message": {"from_id": -5, "text": "of a community"}}},
        {"object": {"message": {"from_id": 5, "peer_id": 2_000_000_001, "text": "in a chat"}}},
        {"event_id": 7},
    ],
)
async def test_an_event_that_is_no_private_message_is_acknowledged_and_dropped(api: Api, changed: object) -> None:
    assert isinstance(changed, dict)
    assert (await post(api, EVENT | changed)).body == b"ok"
    assert await events(api, "vk") == []


async def test_an_event_that_is_no_object_is_refused(api: Api) -> None:
    assert (await post(api, b"[]")).code == "WRONG_TYPE"
    assert (await post(api, b"{")).code == "JSON_MALFORMED"


UPDATE: dict[str, Any] = {
    "update_id": 5,
    "message": {
        "message_id": 1,
        "date": NOW,
        "chat": {"id": 100001, "type": "private"},
        "from": {"id": 100001, "is_bot": False, "first_name": "Анна", "language_code": "ru"},
        "text": "/help",
    },
}


async def post_update(api: Api, update: object, secret: str = "tg") -> ApiResponse:
    headers = WITHOUT_KEY | {"X-Telegram-Bot-Api-Secret-Token": secret}
    return await api.call("POST", "/v1/inbound/telegram", update, headers=headers)


async def test_an_update_of_telegram_that_is_repeated_becomes_one_event(api: Api) -> None:
    for _ in range(2):
        assert (await post_update(api, UPDATE)).status == 200
    (event,) = await events(api, "telegram-bot")
    assert (shown(event), event["first_name"], event["language_code"]) == (("5", "100001", "/help"), "Анна", "ru")


async def test_an_update_of_telegram_with_a_wrong_secret_is_refused(api: Api) -> None:
    refused = await post_update(api, UPDATE, "wrong")
    assert (refused.status, refused.code) == (403, "INBOUND_SECRET_WRONG")
    assert await events(api, "telegram-bot") == []


@pytest.mark.parametrize("changed", [{"message": None}, {"message": {"chat": 5}}, {"update_id": "x"}, {"message": []}])
async def test_an_update_of_telegram_that_is_not_answered_is_acknowledged(api: Api, changed: object) -> None:
    assert isinstance(changed, dict)
    assert (await post_update(api, UPDATE | changed)).status == 200
    assert await events(api, "telegram-bot") == []


async def test_a_message_with_half_a_surrogate_pair_is_acknowledged_with_one_log_line(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise the provider posts it for ever, and none that came after it."""
    half = "half \ud83d"
    assert (await post_update(api, {**UPDATE, "message": {**UPDATE["message"], "text": half}})).status == 200
    message = {**EVENT["object"]["message"], "text": half}
    assert (await post(api, {**EVENT, "object": {"message": message}})).body == b"ok"
    assert await events(api, "telegram-bot") == await events(api, "vk") == []
    assert len([line for line in caplog.messages if "is ignored: EVENT_MALFORMED" in line]) == 2


class TestWithoutSecrets:
    @pytest.fixture
    def options(self) -> Options:
        return Options()

    async def test_nothing_is_received_until_a_secret_is_set(self, api: Api) -> None:
        refused = await get(api, secret="")
        assert (refused.status, refused.code) == (404, "INBOUND_NOT_SET_UP")
        assert (await post(api, {**EVENT, "secret": ""})).code == "INBOUND_NOT_SET_UP"
