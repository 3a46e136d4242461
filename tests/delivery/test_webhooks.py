"""The endpoints /v1/webhooks and the command line."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cli.main import main
from tests.core.webhooks.conftest import new_receiver, receiver
from tests.core.webhooks.receiver import Receiver, status
from tests.delivery.conftest import Api, ApiResponse
from tests.support.servers import several_shards

__all__ = ["several_shards"]

__all__ = ["new_receiver", "receiver"]  # fixtures


async def create(api: Api, receiver: Receiver, **headers: str) -> ApiResponse:
    body = {"url": receiver.url(), "events": ["outcome", "finished"]}
    return await api.call("POST", "/v1/webhooks", body, headers=headers)


async def test_a_webhook_is_created_listed_tested_and_deleted(api: Api, receiver: Receiver) -> None:
    created = await create(api, receiver)
    assert created.status == 201
    assert created.json["secret"].startswith("whsec_")
    listed = await api.call("GET", "/v1/webhooks")
    assert [one["id"] for one in listed.json["webhooks"]] == [created.json["id"]]
    assert created.json["secret"] not in listed.body.decode()
    where = f"/v1/webhooks/{created.json['id']}"
    tested = await api.call("POST", f"{where}/test")
    assert (tested.status, tested.json["succeeded"], tested.json["status"]) == (200, True, 204)
    (call,) = receiver.calls
    call.verify(created.json["secret"])
    assert (call.type, call.id) == ("test", tested.json["webhook_id"])
    attempts = await api.call("GET", f"{where}/attempts")
    assert (attempts.json["waiting"], attempts.json["dead_letters"]) == (0, 0)
    assert attempts.json["attempts"] == [tested.json]
    assert (await api.call("POST", f"{where}/replay")).json == {"replayed": 0}
    assert (await api.call("DELETE", where)).json == {"id": created.json["id"], "dropped": 0}
    assert (await api.call("DELETE", where)).code == "WEBHOOK_NOT_FOUND"
    assert (await api.call("GET", "/v1/webhooks")).json == {"webhooks": []}


async def test_a_test_reports_why_the_receiver_did_not_accept(api: Api, receiver: Receiver) -> None:
    receiver.answer = status(500)
    where = f"/v1/webhooks/{(await create(api, receiver)).json['id']}"
    assert (await api.call("POST", f"{where}/test")).json["error"] == "status"
    await receiver.stop()
    failed = await api.call("POST", f"{where}/test")
    assert (failed.json["status"], failed.json["error"]) == (None, "connection")


async def test_the_responses_match_their_schemas(api: Api, receiver: Receiver) -> None:
    created = await create(api, receiver)
    where = f"/v1/webhooks/{created.json['id']}"
    found = {
        ("post", "/v1/webhooks"): created,
        ("get", "/v1/webhooks"): await api.call("GET", "/v1/webhooks"),
        ("post", "/v1/webhooks/{id}/test"): await api.call("POST", f"{where}/test"),
        ("get", "/v1/webhooks/{id}/attempts"): await api.call("GET", f"{where}/attempts"),
        ("post", "/v1/webhooks/{id}/replay"): await api.call("POST", f"{where}/replay"),
        ("delete", "/v1/webhooks/{id}"): await api.call("DELETE", where),
    }
    document = (await api.call("GET", "/openapi.json")).json
    for (method, path), response in found.items():
        described = document["paths"][path][method]["responses"][str(response.status)]["content"]["application/json"]
        Draft202012Validator({**described["schema"], "components": document["components"]}).validate(response.json)


async def test_a_repeated_creation_with_an_idempotency_key_gets_the_first_webhook(api: Api, receiver: Receiver) -> None:
    first, again = [await create(api, receiver, **{"Idempotency-Key": "one"}) for _ in range(2)]
    assert first.json == again.json
    assert len((await api.call("GET", "/v1/webhooks")).json["webhooks"]) == 1


async def test_webhooks_need_the_scope_manage_and_belong_to_a_tenant(api: Api, receiver: Receiver) -> None:
    _, sender = await api.services.api_keys.create("sender", ["send", "read"])
    _, manager = await api.services.api_keys.create("manager", ["manage"])
    _, foreign = await api.services.api_keys.create("foreign", ["manage"], "another")
    refused = await create(api.as_key(sender), receiver)
    assert (refused.status, refused.code) == (403, "SCOPE_MISSING")
    created = await create(api.as_key(manager), receiver)
    where = f"/v1/webhooks/{created.json['id']}"
    assert (await api.as_key(foreign).call("GET", "/v1/webhooks")).json == {"webhooks": []}
    for method, path in (("DELETE", ""), ("POST", "/test"), ("GET", "/attempts"), ("POST", "/replay")):
        response = await api.as_key(foreign).call(method, where + path)
        assert (response.status, response.code) == (404, "WEBHOOK_NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"url": "ftp://example.org/", "events": ["outcome"]}, "WEBHOOK_URL_MALFORMED"),
        ({"url": "http://127.0.0.1/", "events": ["opened"]}, "WRONG_VALUE"),
        ({"url": "http://127.0.0.1/", "events": []}, "TOO_SHORT"),
        ({"url": "http://127.0.0.1/"}, "REQUIRED"),
        ({"url": "http://nowhere.invalid/", "events": ["outcome"]}, "WEBHOOK_HOST_UNKNOWN"),
    ],
)
async def test_a_malformed_webhook_is_refused(api: Api, body: Mapping[str, Any], code: str) -> None:
    refused = await api.call("POST", "/v1/webhooks", body)
    assert (refused.status, refused.code) == (400, code)
    assert (await api.call("GET", "/v1/webhooks")).json == {"webhooks": []}


class TestTheCommandLine:
    async def test_every_verb_of_webhook_works(
        self, api: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("ADA_HTTP", api.url.removeprefix("http://"))
        monkeypatch.setenv("ADA_API_KEY", api.secret)

        async def ada(*words: str) -> tuple[int, str]:
            import asyncio

            code = await asyncio.to_thread(main, ["webhook", *words])
            return code, capsys.readouterr().out

        code, output = await ada("add", receiver.url(), "--event", "finished", "--json")
        webhook = json.loads(output)["id"]
        assert (code, json.loads(output)["events"]) == (0, ["finished"])
        assert webhook in (await ada("list"))[1]
        assert (await ada("test", webhook))[0] == 0
        receiver.answer = status(500)
        assert (await ada("test", webhook))[0] == 1
        code, output = await ada("attempts", webhook)
        assert output.splitlines()[0] == "waiting: 0 messages; given up: 0"
        assert len(output.splitlines()) == 3
        assert (await ada("replay", webhook)) == (0, "sent again: 0 messages\n")
        assert (await ada("remove", webhook))[0] == 0
        assert (await ada("list")) == (0, "")
