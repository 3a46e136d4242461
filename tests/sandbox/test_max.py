"""The simulated MAX over its own protocol, called by plain aiohttp: there is no official client in Python."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession, FormData, web

from sandbox.events import Fault, Rule
from sandbox.faults import FAULTS
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.max import MaxServer
from sandbox.max.bot import BOT_ID
from sandbox.max.updates import Updates
from sandbox.state import SandboxState
from tests.sandbox.conftest import CallbackServer
from tests.support.waiting import until

ADDRESSES = {fault.name: address for address, fault in MAGIC_RECIPIENTS["max"].items()}


@dataclass
class Max:
    """The server with a client. A call returns the status and the body."""

    state: SandboxState
    server: MaxServer
    session: ClientSession

    async def call(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        headers = {"Authorization": self.server.token}
        url = f"{self.server.url}/{path}"
        async with self.session.request(method, url, json=body, params=query, headers=headers) as answer:
            return answer.status, await answer.json()

    async def send(self, user: int | str, text: str = "hello", **more: Any) -> Any:
        """Returns the mid, or the refusal."""
        status, body = await self.call("POST", "messages", {"text": text, **more}, user_id=user)
        return (status, body["code"]) if "code" in body else body["message"]["body"]["mid"]

    async def updates(self, marker: int | None = None, timeout: int = 0) -> Any:
        query = {"timeout": timeout} | ({} if marker is None else {"marker": marker})
        return (await self.call("GET", "updates", **query))[1]


@pytest.fixture
async def max_client(state: SandboxState) -> AsyncIterator[Max]:
    server = MaxServer(state, webhook_pause=0.01)
    await server.start()
    async with ClientSession() as session:
        yield Max(state, server, session)
    await server.stop()


async def test_a_message_is_in_the_inbox_with_its_mid_and_the_dialog_has_an_id_of_its_own(max_client: Max) -> None:
    status, body = await max_client.call("POST", "messages", {"text": "Пары не будет"}, user_id=300001)
    (received,) = max_client.state.inbox("max")
    message = body["message"]
    assert (status, received.address, received.text) == (200, "300001", "Пары не будет")
    assert received.reference == message["body"]["mid"]
    assert message["recipient"] == {"chat_id": 300001 ^ BOT_ID, "chat_type": "dialog", "user_id": 300001}
    assert (await max_client.call("POST", "messages", {"text": "x"}, chat_id=300001))[1]["code"] == "chat.not.found"


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer max-sandbox-token"}, {"Authorization": "another"}])
async def test_a_missing_or_wrong_token_is_refused(max_client: Max, headers: dict[str, str]) -> None:
    async with max_client.session.get(f"{max_client.server.url}/me", headers=headers) as answer:
        assert (answer.status, (await answer.json())["code"]) == (401, "verify.token")


@pytest.mark.parametrize(
    "body",
    [
        {"text": "x" * 4001},
        {"text": "😀" * 2001},
        {"text": ""},
        {"text": "x", "format": "telegram"},
        {"text": "x", "attachments": [{"type": "image", "payload": {"token": "unknown"}}]},
        {"text": "x", "attachments": [{"type": "inline_keyboard", "payload": {"buttons": []}}]},
        {"text": "x", "link": {"type": "reply"}, "attachments": 5},
    ],
)
async def test_what_the_schema_does_not_allow_is_refused_and_stores_nothing(max_client: Max, body: Any) -> None:
    status, refusal = await max_client.call("POST", "messages", body, user_id=300001)
    assert (status, refusal["code"]) == (400, "proto.payload")
    assert max_client.state.inbox() == []


@pytest.mark.parametrize(
    ("fault", "answer", "copies"),
    [
        ("flood_wait", (429, "too.many.requests"), 0),
        ("too_fast", (429, "too.many.requests"), 0),
        ("suspended", (403, "chat.denied"), 0),
        ("dialog_not_found", (404, "dialog.not.found"), 0),
        ("chat_not_found", (404, "chat.not.found"), 0),
        ("bad_payload", (400, "proto.payload"), 0),
        ("method_not_allowed", (405, "method.not.allowed"), 0),
        ("unauthorized", (401, "verify.token"), 0),
        ("denied_with_200", (200, "chat.denied"), 0),
        ("error_with_200", (200, "internal.error"), 0),
        ("busy", (503, "service.unavailable"), 0),
        ("server_error", (500, "internal.error"), 0),
        ("stored_then_error", (500, "internal.error"), 1),
    ],
)
async def test_a_fault_answers_with_its_error(
    max_client: Max, fault: str, answer: tuple[int, str], copies: int
) -> None:
    assert await max_client.send(ADDRESSES[fault]) == answer
    assert len(max_client.state.inbox("max", ADDRESSES[fault])) == copies


@pytest.mark.parametrize(
    ("fault", "copies"),
    [
        *(("bad_gateway", 0), ("not_json", 0), ("stored_then_bad_gateway", 1), ("stored_then_not_json", 1)),
        *(("timeout", 0), ("stored_then_silence", 1), ("disconnect_before", 0), ("disconnect_after", 1)),
    ],
)
async def test_a_fault_of_the_connection_gives_no_answer_of_the_api(max_client: Max, fault: str, copies: int) -> None:
    is_silent = fault in ("timeout", "stored_then_silence")
    with pytest.raises(TimeoutError if is_silent else ClientError):
        async with asyncio.timeout(2 if is_silent else 60):
            await max_client.send(ADDRESSES[fault])
    assert len(max_client.state.inbox("max", ADDRESSES[fault])) == copies


async def test_some_refusals_end_after_a_number_of_attempts(max_client: Max) -> None:
    for fault, attempts in [("not_ready", 2), ("not_found_at_first", 1)]:
        answers = [await max_client.send(ADDRESSES[fault]) for _ in range(attempts + 1)]
        assert [isinstance(one, str) for one in answers] == [False] * attempts + [True]


async def test_a_limit_of_one_dialog_does_not_concern_the_others(max_client: Max) -> None:
    max_client.state.add_rule(Rule("max", Fault("dialog_rate", 2)))
    answers = [await max_client.send(user) for user in (1, 1, 1, 2)]
    assert [isinstance(one, str) for one in answers] == [True, True, False, True]


def test_every_fault_has_a_magic_recipient() -> None:
    assert set(ADDRESSES) == set(FAULTS["max"])


async def test_a_marker_commits_what_is_before_it_and_without_one_only_the_last_update_comes(max_client: Max) -> None:
    for text in ("one", "two", "three"):
        max_client.server.people.write(300001, text)
    last = await max_client.updates()
    assert [one["message"]["body"]["text"] for one in last["updates"]] == ["three"]
    max_client.server.people.start(300002, "group-7")
    found = await max_client.updates(last["marker"])
    assert [(one["update_type"], one["payload"]) for one in found["updates"]] == [("bot_started", "group-7")]


async def test_a_third_poll_within_a_second_is_refused(max_client: Max) -> None:
    found = [(await max_client.call("GET", "updates", timeout=0))[0] for _ in range(3)]
    assert found == [200, 200, 429]


async def test_a_webhook_gets_each_update_with_the_secret_until_it_takes_it(
    max_client: Max, callbacks: CallbackServer
) -> None:
    body = {"url": callbacks.url, "update_types": ["message_created"], "secret": "s3cret"}
    assert (await max_client.call("POST", "subscriptions", body))[0] == 200
    callbacks.answer = 500
    max_client.server.people.start(300001)
    max_client.server.people.write(300001, "hello")
    await until(lambda: len(callbacks.bodies) >= 2)
    callbacks.answer = 200
    await until(lambda: max_client.state.counter("max", "callbacks") == 1)
    assert {one["update_type"] for one in callbacks.bodies} == {"message_created"}
    assert (await max_client.call("GET", "updates", timeout=0))[0] == 400
    assert (await max_client.call("DELETE", "subscriptions", url=callbacks.url))[0] == 200
    assert (await max_client.call("GET", "subscriptions"))[1] == {"subscriptions": []}


async def test_a_press_is_answered_with_a_new_content_of_its_message_and_never_with_nothing(max_client: Max) -> None:
    buttons = {
        "type": "inline_keyboard",
        "payload": {"buttons": [[{"type": "callback", "text": "Да", "payload": "y"}]]},
    }
    mid = await max_client.send(300001, "Придёте?", attachments=[buttons])
    press = max_client.server.people.press(300001, mid, "Да")
    assert (await max_client.call("POST", "answers", {}, callback_id=press))[0] == 400
    answer = {"message": {"text": "Спасибо", "attachments": []}}
    assert (await max_client.call("POST", "answers", answer, callback_id=press))[0] == 200
    (message,) = max_client.server.people.shown(300001)["messages"]
    assert (message["text"], message["buttons"], message["edited"]) == ("Спасибо", [], True)


async def test_an_uploaded_file_is_named_by_its_token_and_our_token_is_not_for_the_host_of_uploads(
    max_client: Max,
) -> None:
    for kind in ("image", "video", "audio", "file"):
        _, first = await max_client.call("POST", "uploads", type=kind)
        form = FormData()
        form.add_field("data", b"bytes", filename="menu.png", content_type="image/png")
        async with max_client.session.post(first["url"], data=form) as answer:
            body = {} if kind in ("video", "audio") else await answer.json()
        token = first.get("token") or body.get("token") or next(iter(body["photos"].values()))["token"]
        assert isinstance(await max_client.send(1, "x", attachments=[{"type": kind, "payload": {"token": token}}]), str)
    _, other = await max_client.call("POST", "uploads", type="image")
    async with max_client.session.post(other["url"], data=b"x", headers={"Authorization": "t"}) as answer:
        assert answer.status == web.HTTPBadRequest.status_code


async def test_a_dialog_shows_its_newest_messages_first(max_client: Max) -> None:
    mids = [await max_client.send(300001, text) for text in ("one", "two")]
    found = (await max_client.call("GET", "messages", chat_id=300001 ^ BOT_ID, count=5))[1]["messages"]
    assert [one["body"]["mid"] for one in found] == mids[::-1]


async def test_a_person_who_stopped_the_bot_is_refused_until_the_next_start(max_client: Max) -> None:
    max_client.server.people.stop(300001)
    assert await max_client.send(300001) == (403, "chat.denied")
    max_client.server.people.start(300001)
    assert isinstance(await max_client.send(300001), str)


async def test_a_marker_of_an_earlier_start_gets_what_came_after_the_new_one() -> None:
    """The numbers began at 1 at each start, so the bot missed as many messages as there had been before."""
    earlier = Updates()
    for _ in range(3):
        earlier.add("bot_started", {})
    marker = (await earlier.poll(None, 100, 0, ()))["marker"]
    later = Updates()
    later.add("bot_started", {})
    assert len((await later.poll(marker, 100, 0, ()))["updates"]) == 1
