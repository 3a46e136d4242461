"""An event that is posted is put once for the bot of its tenant, and only if scenarios can use it."""

from typing import Any

import pytest

from core.queue import QueueClient
from core.updates.events import TUBE, Events, decode
from tests.delivery.conftest import Api, ApiResponse
from tests.delivery.test_authentication import a_key

EVENT = {"id": "e1", "channel": "web", "kind": "text", "user_id": 7, "event_text": "/start"}


async def post(api: Api, **more: Any) -> ApiResponse:
    return await api.call("POST", "/v1/updates", {**EVENT, **more})


async def events(api: Api) -> list[dict[str, Any]]:
    """The events in the queue, in any order."""
    found = await api.call("GET", f"/v1/queue/tasks?tube={TUBE}")
    return [dict(decode(task["body"])) for task in found.json["tasks"]]


async def test_an_event_is_accepted_and_a_repeat_changes_nothing(api: Api) -> None:
    first, again, other = await post(api), await post(api), await post(api, id="e2")
    assert [first.status, again.status, other.status] == [202, 200, 202]
    assert first.json == again.json == {"id": "e1", "user": "web:7"}
    assert len(await events(api)) == 2


async def test_what_a_client_leaves_out_is_filled_in(api: Api) -> None:
    body = {"channel": "web", "user_id": "anna", "callback_data": "да", "username": None}
    response = await api.call("POST", "/v1/updates", body)
    (event,) = await events(api)
    assert (event["kind"], event["chat_id"], event["id"]) == ("callback", "anna", response.json["id"])
    assert event["event_date"]
    assert "username" not in event


@pytest.mark.parametrize(
    ("wrong", "code", "path"),
    [
        ({"user_id": None}, "WRONG_TYPE", "user_id"),
        ({"kind": "poll"}, "WRONG_VALUE", "kind"),
        ({"id": "a b"}, "WRONG_FORMAT", "id"),
        ({"channel": "Telegram"}, "WRONG_FORMAT", "channel"),
        ({"attachments": [{"file_id": "f"}]}, "REQUIRED", "attachments.0.type"),
        ({"colour": "red"}, "UNKNOWN_FIELD", "colour"),
        ({"origin": "telegram-bot"}, "UNKNOWN_FIELD", "origin"),
        ({"key_scopes": ["admin"]}, "UNKNOWN_FIELD", "key_scopes"),
    ],
)
async def test_a_wrong_event_is_refused_with_the_field(api: Api, wrong: dict[str, Any], code: str, path: str) -> None:
    refused = await post(api, **wrong)
    assert (refused.status, refused.code) == (400, code)
    assert [error["path"] for error in refused.json["errors"]] == [path]
    assert await events(api) == []


async def test_an_event_that_is_too_large_is_refused(api: Api) -> None:
    refused = await post(api, event_text="я" * 2**16, reply_message_text="я" * 2**16)
    assert (refused.status, refused.code) == (413, "EVENT_TOO_LARGE")


async def test_a_tenant_without_a_bot_is_refused(api: Api) -> None:
    refused = await post(await a_key(api, "updates", tenant="other"))
    assert (refused.status, refused.code) == (404, "BOT_NOT_SET_UP")


@pytest.mark.parametrize("scopes", [("send",), ("send", "read", "manage", "urgent")])
async def test_a_key_that_may_send_may_not_hand_in_what_people_wrote(api: Api, scopes: tuple[str, ...]) -> None:
    refused = await post(await a_key(api, *scopes))
    assert (refused.status, refused.code) == (403, "SCOPE_MISSING")
    assert await events(api) == []


async def test_an_event_carries_the_scopes_of_the_key_that_handed_it_in(api: Api) -> None:
    assert (await post(await a_key(api, "updates", "read"))).status == 202
    (event,) = await events(api)
    assert (event["origin"], event["key_scopes"]) == ("api", ["read", "updates"])


async def test_a_client_cannot_take_the_id_of_an_update_of_telegram(api: Api) -> None:
    """The source of Telegram's updates is the tenant, which may have any name, `api` for example."""
    telegram = Events(QueueClient(api.store), "api")
    assert (await post(await a_key(api, "updates", tenant="api"), channel="telegram-bot")).status == 202
    assert await telegram.put("api", {**EVENT, "channel": "telegram-bot"}), "it is no repeat"
