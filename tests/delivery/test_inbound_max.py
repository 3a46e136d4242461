"""MAX posts updates: each becomes one event, and only with the right secret."""

import time
from typing import Any

import pytest

from delivery.http.options import Inbound, Options
from tests.delivery.conftest import Api
from tests.delivery.test_inbound import WITHOUT_KEY, events

UPDATE: dict[str, Any] = {
    "update_type": "message_created",
    "timestamp": time.time_ns() // 1_000_000,
    "message": {
        "sender": {"user_id": 300001, "first_name": "Анна"},
        "recipient": {"chat_type": "dialog", "chat_id": 295710, "user_id": 5151},
        "body": {"mid": "mid.1", "text": "/help"},
    },
}


@pytest.fixture
def options() -> Options:
    return Options(inbound=Inbound({"max": "s3cret"}))


async def post(api: Api, update: object, secret: str = "s3cret") -> tuple[int, Any]:
    headers = {**WITHOUT_KEY, "X-Max-Bot-Api-Secret": secret}
    response = await api.call("POST", "/v1/updates/max", update, headers=headers)
    return response.status, response.json and response.code


async def test_an_update_that_is_repeated_is_one_event(api: Api) -> None:
    assert [await post(api, UPDATE) for _ in range(2)] == [(200, None)] * 2
    (event,) = await events(api, "max")
    assert (event["channel"], event["user_id"], event["event_text"]) == ("max", 300001, "/help")


async def test_another_secret_is_refused_and_stores_nothing(api: Api) -> None:
    assert await post(api, UPDATE, "wrong") == (403, "INBOUND_SECRET_WRONG")
    assert await events(api, "max") == []


@pytest.mark.parametrize("update", [{}, {"update_type": "dialog_muted", "timestamp": 1}, {"update_type": 5}])
async def test_what_is_no_event_is_acknowledged_so_that_it_is_not_repeated(api: Api, update: object) -> None:
    assert await post(api, update) == (200, None)
    assert await events(api, "max") == []


async def test_what_is_no_object_is_refused(api: Api) -> None:
    assert (await post(api, [UPDATE]))[0] == 400
