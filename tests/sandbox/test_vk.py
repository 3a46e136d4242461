"""The VK sandbox, called by an unmodified vkbottle."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import ClientSession, FormData
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vkbottle import API, BotPolling, VKAPIError

from sandbox.state import SandboxState
from sandbox.vk.community import Community
from sandbox.vk.dialogs import MessageContent
from tests.sandbox.conftest import Vk
from tests.support.waiting import until


def call(**parameters: Any) -> str:
    return f"API.messages.send({json.dumps({'random_id': 1, 'message': 'hello', **parameters})})"


def entry(peer: int, message_id: int) -> dict[str, int]:
    """What messages.send answers for the first message of a dialog."""
    return {"peer_id": peer, "message_id": message_id, "conversation_message_id": 1}


async def test_one_recipient_gets_one_message_and_the_response_is_its_id(vk: Vk) -> None:
    first, second = await vk.send(peer_id=5), await vk.send(user_id=6, random_id=2)
    received = vk.state.inbox("vk")
    assert [(one.address, one.text, one.random_id) for one in received] == [("5", "hello", 1), ("6", "hello", 2)]
    assert [one.reference for one in received] == [str(first), str(second)]
    assert second > first


@pytest.mark.parametrize("peers", [[5, 6], "5,6"])
@pytest.mark.parametrize("name", ["peer_ids", "user_ids"])
async def test_several_recipients_get_an_entry_each(vk: Vk, name: str, peers: Any) -> None:
    assert await vk.send(**{name: peers}) == [entry(5, 1), entry(6, 2)]
    assert [one.address for one in vk.state.inbox("vk")] == ["5", "6"]


async def test_typed_calls_of_vkbottle_work(vk: Vk) -> None:
    assert await vk.api.messages.send(peer_id=5, random_id=3, message="typed") == 1
    users = await vk.api.users.get(user_ids=[5])
    assert (users[0].id, users[0].last_name) == (5, "5")
    groups = await vk.api.groups.get_by_id()
    assert groups.groups is not None
    assert groups.groups[0].name == "Sandbox"
    allowed = [await vk.api.messages.is_messages_from_group_allowed(group_id=1, user_id=u) for u in (5, 900_001)]
    assert [bool(one.is_allowed) for one in allowed] == [True, False]


async def test_a_known_random_id_is_the_same_message(vk: Vk) -> None:
    assert await vk.send(peer_id=5) == await vk.send(peer_id=5, message="another text") == 1
    assert await vk.send(peer_id=6) == 2
    assert vk.texts("5") == ["hello"]


async def test_a_known_random_id_within_one_request_is_the_same_message(vk: Vk) -> None:
    answer = await vk.execute(f"return [{call(peer_ids=[5, 5])}, {call(peer_id=5)}];")
    assert answer["response"] == [[entry(5, 1)] * 2, 1]
    assert vk.texts("5") == ["hello"]


def committed(community: Community, random_id: int, peer: str = "5") -> int:
    message = community.send(peer, MessageContent("x"), random_id)
    community.commit()
    return message.id


def test_a_random_id_is_forgotten_after_an_hour() -> None:
    now = [0.0]
    community = Community(SandboxState(), lambda: now[0])
    first = committed(community, 1)
    now[0] = 3599
    assert committed(community, 1) == first
    now[0] = 3600
    assert committed(community, 1) == first + 1
    now[0] = 7199
    assert committed(community, 1) == first + 1


def test_a_random_id_is_forgotten_after_100_messages_of_its_dialog() -> None:
    community = Community(SandboxState())
    first = committed(community, 1)
    others = [committed(community, 1000 + number, peer="6") for number in range(200)]
    for number in range(99):
        committed(community, 2 + number)
    assert committed(community, 1) == first
    committed(community, 500)
    assert committed(community, 1) > max(others)


def test_a_random_id_that_was_used_again_is_remembered_from_its_second_use() -> None:
    now = [0.0]
    community = Community(SandboxState(), lambda: now[0])
    for random_id in range(101):
        committed(community, random_id)
    now[0] = 1800
    second = committed(community, 0)
    now[0] = 3600
    committed(community, 999)  # forgets what is older than an hour
    assert committed(community, 0) == second


@pytest.mark.parametrize(
    ("parameters", "code", "message"),
    [
        ({}, 100, "peer_id, peer_ids, user_id or user_ids is required"),
        ({"peer_id": "abc"}, 100, "peer_id not integer"),
        ({"peer_ids": "1,,2"}, 100, "peer_ids not integer"),
        ({"peer_ids": "0"}, 100, "peer_ids is invalid"),
        ({"peer_id": 5, "random_id": None}, 100, "random_id is a required parameter"),
        ({"peer_id": 5, "random_id": 0}, 100, "random_id is invalid"),
        ({"peer_id": 5, "random_id": 2**31}, 100, "random_id not integer"),
        ({"peer_id": 5, "random_id": -(2**31) - 1}, 100, "random_id not integer"),
        ({"peer_ids": list(range(1, 102))}, 100, "peer_ids has too many elements"),
        ({"peer_id": 5, "message": ""}, 100, "message is empty or invalid"),
        ({"peer_id": 5, "message": "x" * 4097}, 914, "Message is too long"),
    ],
)
async def test_invalid_parameters_are_refused(vk: Vk, parameters: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(VKAPIError, match=message) as refused:
        await vk.send(**parameters)
    assert refused.value.code == code
    assert vk.state.inbox() == []


async def test_the_limits_are_inclusive(vk: Vk) -> None:
    entries = await vk.send(peer_ids=list(range(1, 101)), message="x" * 4096, random_id=-(2**31))
    assert [entry["peer_id"] for entry in entries] == list(range(1, 101))


async def request_once(session: ClientSession, url: str, **parameters: str) -> tuple[int, dict[str, Any]]:
    async with session.get(url, params=parameters) as answer:
        return answer.status, await answer.json()


async def test_errors_come_with_http_200_and_the_request_without_its_token(vk: Vk, session: ClientSession) -> None:
    status, body = await request_once(
        session, vk.server.url + "users.nosuch", access_token=vk.server.token, v="5.199", a="b"
    )
    assert (status, body["error"]["error_code"], body["error"]["error_msg"]) == (200, 3, "Unknown method passed")
    shown = {one["key"]: one["value"] for one in body["error"]["request_params"]}
    assert shown == {"method": "users.nosuch", "oauth": "1", "v": "5.199", "a": "b"}


@pytest.mark.parametrize(
    ("parameters", "code"),
    [({"v": "5.199"}, 5), ({"v": "5.199", "access_token": "wrong"}, 5), ({"access_token": "vk1.a.sandbox"}, 8)],
)
async def test_token_and_version_are_checked(
    vk: Vk, session: ClientSession, parameters: dict[str, str], code: int
) -> None:
    status, body = await request_once(
        session, vk.server.url + "messages.send", peer_id="5", random_id="1", **parameters
    )
    assert (status, body["error"]["error_code"]) == (200, code)


async def test_a_wrong_token_is_refused_to_the_client(vk: Vk) -> None:
    other = API("wrong")
    other.API_URL = vk.server.url
    with pytest.raises(VKAPIError[5]):
        await other.users.get(user_ids=[1])
    await other.http_client.close()


@pytest.mark.parametrize("charset", ["nosuch", "utf-8"])
async def test_a_form_in_an_unknown_encoding_is_not_a_server_error(
    vk: Vk, session: ClientSession, charset: str
) -> None:
    kind = {"Content-Type": f"application/x-www-form-urlencoded; charset={charset}"}
    query = {"access_token": vk.server.token, "v": "5.199"}
    async with session.post(
        vk.server.url + "messages.send", params=query, data=b"message=\xff&peer_id=5&random_id=1", headers=kind
    ) as answer:
        assert answer.status == 200


async def test_a_file_instead_of_a_text_counts_as_absent(vk: Vk, session: ClientSession) -> None:
    form = FormData({"peer_id": "5", "random_id": "1"})
    form.add_field("message", b"x", filename="x.txt")
    query = {"access_token": vk.server.token, "v": "5.199"}
    async with session.post(vk.server.url + "messages.send", params=query, data=form) as answer:
        assert (await answer.json())["error"]["error_msg"].endswith("message is empty or invalid")


# execute


async def test_execute_runs_the_posted_code(vk: Vk) -> None:
    answer = await vk.execute(
        f'return {{"users": API.users.get({{"user_ids": "5"}}), "sent": {call(peer_ids=[5, 6])}}};'
    )
    sent = [entry(5, 1), entry(6, 2)]
    assert answer == {"response": {"users": [{"id": 5, "first_name": "Person", "last_name": "5"}], "sent": sent}}
    assert vk.texts("5") == vk.texts("6") == ["hello"]


async def test_a_failed_call_leaves_false_and_an_entry_in_execute_errors(vk: Vk) -> None:
    program = f"return [{call(peer_id=900_001)}, {call(peer_id=5)}, API.no.such(), {call(peer_id=900_006)}];"
    answer = await vk.execute(program)
    assert answer["response"] == [False, 1, False, False]
    failed = [(error["method"], error["error_code"]) for error in answer["execute_errors"]]
    assert failed == [("messages.send", 901), ("no.such", 3), ("messages.send", 18)]
    assert answer["execute_errors"][0]["error_msg"] == "Can't send messages for users without permission"


@pytest.mark.parametrize(
    "code", ["return [{call}]", 'return [{call}, "\u2028"];', "var a = {call}; return a;", "return [{call}", "{call};"]
)
async def test_malformed_code_is_error_12_and_sends_nothing(vk: Vk, code: str) -> None:
    with pytest.raises(VKAPIError[12], match=r"^Unable to compile code: "):
        await vk.execute(code.replace("{call}", call(peer_id=5)))
    assert vk.state.inbox() == []


async def test_the_26th_call_is_error_13_and_the_25_before_it_are_executed(vk: Vk) -> None:
    calls = [call(peer_id=number) for number in range(1, 27)]
    with pytest.raises(VKAPIError[13], match="Too many API calls"):
        await vk.execute(f"return [{','.join(calls)}];")
    assert len(vk.state.inbox("vk")) == 25


async def test_a_message_of_a_refused_request_is_not_sent_with_the_next_one(vk: Vk) -> None:
    with pytest.raises(VKAPIError[29]):
        await vk.execute(f"return [{call(peer_id=5)}, {call(peer_id=900_036)}];")
    await vk.send(peer_id=6)
    assert [one.address for one in vk.state.inbox("vk")] == ["6"]
    assert await vk.send(peer_id=5) > 0
    assert vk.texts("5") == ["hello"]


async def test_2500_recipients_are_one_http_request(vk: Vk) -> None:
    text = "Привет, 😀" * 200
    calls = [call(peer_ids=list(range(start, start + 100)), message=text) for start in range(1, 2501, 100)]
    answer = await vk.execute(f"return [{','.join(calls)}];")
    assert [entry["peer_id"] for group in answer["response"] for entry in group] == list(range(1, 2501))
    assert len(vk.state.inbox("vk")) == 2500
    counted = {what: vk.state.counter("vk", what) for what in ("http", "execute", "calls", "messages.send")}
    assert counted == {"http": 1, "execute": 1, "calls": 25, "messages.send": 25}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
    random_id=st.integers(1, 2**31 - 1),
)
async def test_any_text_is_received_unchanged(vk: Vk, text: str, random_id: int) -> None:
    peer = f"{len(vk.state.inbox()) + 1}"
    answer = await vk.execute(f"return [{call(peer_ids=[int(peer)], message=text, random_id=random_id)}];")
    assert "execute_errors" not in answer
    assert vk.texts(peer) == [text]


async def test_vkbottles_polling_gets_what_a_recipient_reads(vk: Vk) -> None:
    await vk.send(peer_id=5)
    events = BotPolling(vk.api, wait=1).listen()
    reading = asyncio.create_task(anext(events))
    await until(lambda: vk.state.counter("vk", "longpoll") == 1)
    assert vk.server.mark_read("5") == 1
    event = await asyncio.wait_for(reading, 20)
    (update,) = event["updates"]
    assert (update["type"], update["object"]["from_id"], update["object"]["read_message_id"]) == ("message_read", 5, 1)
    await events.aclose()


async def test_a_long_poll_without_events_ends_after_its_wait(vk: Vk) -> None:
    poll = vk.server.long_poll
    assert await poll.answer({"key": poll.key, "ts": "1", "wait": "0"}) == {"ts": "1", "updates": []}


@pytest.mark.parametrize(
    ("query", "failed"), [({"key": "wrong", "ts": "1"}, 2), ({"ts": "99"}, 1), ({"ts": "x"}, 1), ({}, 1)]
)
async def test_a_long_poll_with_a_wrong_key_or_number_fails(vk: Vk, query: dict[str, str], failed: int) -> None:
    answer = await vk.server.long_poll.answer({"key": vk.server.long_poll.key, **query})
    assert answer["failed"] == failed
