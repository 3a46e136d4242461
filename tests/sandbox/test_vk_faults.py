"""Every failure of the VK sandbox, by magic recipient and by rule."""

import asyncio
import json

import pytest
from aiohttp import ClientError, ClientPayloadError, ServerDisconnectedError
from vkbottle import CaptchaError, VKAPIError

from sandbox.magic_recipients import MAGIC
from sandbox.state import Fault, Rule
from tests.sandbox.conftest import NotJson, Vk
from tests.support.waiting import until

pytestmark = pytest.mark.row("D-43")

NEVER = 0.3  # seconds in which an answer that comes at all has come hundreds of times over
BY_FAULT = {fault: int(address) for address, fault in MAGIC["vk"].items()}


def codes(name: str) -> list[int]:
    return [fault.value for fault in BY_FAULT if fault.name == name and fault.value is not None]


def person(name: str, value: int | None = None) -> int:
    return BY_FAULT[Fault(name, value)]


def send(*peers: int, random_id: int = 1) -> str:
    message = json.dumps({"peer_ids": peers, "message": "hello", "random_id": random_id})
    return f"API.messages.send({message})"


def program(*calls: str) -> str:
    return f"return [{','.join(calls)}];"


def reached(vk: Vk) -> list[str]:
    return [received.address for received in vk.world.inbox("vk")]


@pytest.mark.parametrize("code", codes("error"))
async def test_error_is_told_in_the_entry_of_this_peer_alone(vk: Vk, code: int) -> None:
    magic = person("error", code)
    good, bad, other = await vk.send(peer_ids=[5, magic, 6])
    assert bad["message_id"] == 0
    assert (bad["peer_id"], bad["error"]["code"]) == (magic, code)
    assert bad["error"]["description"] not in ("", "Unknown error")
    assert (good["message_id"], other["message_id"]) == (1, 2)
    assert reached(vk) == ["5", "6"]


@pytest.mark.parametrize("code", codes("error"))
async def test_error_fails_the_call_for_a_single_peer(vk: Vk, code: int) -> None:
    with pytest.raises(VKAPIError) as refused:
        await vk.send(peer_id=person("error", code))
    assert refused.value.code == code


@pytest.mark.parametrize("code", codes("call_error"))
async def test_call_error_fails_its_call_as_a_whole(vk: Vk, code: int) -> None:
    answer = await vk.execute(program(send(5), send(6, person("call_error", code)), send(7)))
    assert answer["response"] == [[{"peer_id": 5, "message_id": 1}], False, [{"peer_id": 7, "message_id": 2}]]
    assert [(one["method"], one["error_code"]) for one in answer["execute_errors"]] == [("messages.send", code)]
    assert reached(vk) == ["5", "7"]


async def test_peer_poison_refuses_the_call_without_saying_who(vk: Vk) -> None:
    poison = person("peer_poison")
    answer = await vk.execute(program(send(5, poison, 6), send(7, 8)))
    assert answer["response"][0] is False
    assert answer["execute_errors"][0]["error_code"] == 100
    assert str(poison) not in answer["execute_errors"][0]["error_msg"]
    assert reached(vk) == ["7", "8"]


async def test_execute_errors_mismatch_leaves_a_false_without_its_entry(vk: Vk) -> None:
    answer = await vk.execute(program(send(person("execute_errors_mismatch")), send(5), send(person("call_error", 9))))
    assert answer["response"] == [False, [{"peer_id": 5, "message_id": 1}], False]
    assert [one["error_code"] for one in answer["execute_errors"]] == [9]


@pytest.mark.parametrize("code", codes("request_error"))
async def test_request_error_fails_the_whole_request(vk: Vk, code: int) -> None:
    with pytest.raises(VKAPIError) as refused:
        await vk.execute(program(send(5), send(6, person("request_error", code))))
    assert refused.value.code == code
    assert reached(vk) == []


async def test_a_captcha_has_its_picture(vk: Vk) -> None:
    with pytest.raises(CaptchaError) as refused:
        await vk.execute(program(send(person("request_error", 14))))
    assert refused.value.captcha_sid
    assert refused.value.captcha_img


async def test_too_fast_is_error_6(vk: Vk) -> None:
    with pytest.raises(VKAPIError[6], match="Too many requests per second"):
        await vk.execute(program(send(5, person("too_fast"))))
    assert reached(vk) == []


@pytest.mark.parametrize(("name", "status"), [("bad_gateway", 502), ("not_json", 200), ("stored_then_error", 500)])
async def test_pages_in_place_of_an_answer(vk: Vk, name: str, status: int) -> None:
    code = program(send(5), send(person(name)))
    with pytest.raises(NotJson, match="<html>"):
        await vk.execute(code)
    query = {"access_token": vk.server.token, "v": "5.199", "code": code}
    answer = await vk.api.http_client.request_raw(vk.server.url + "execute", method="POST", params=query)
    assert (answer.status, answer.content_type) == (status, "text/html")
    assert reached(vk) == (["5", str(person(name))] if name == "stored_then_error" else [])


async def test_disconnect_before_stores_nothing(vk: Vk) -> None:
    with pytest.raises((ServerDisconnectedError, ClientPayloadError, ConnectionError)):
        await vk.execute(program(send(5), send(person("disconnect_before"))))
    assert reached(vk) == []
    await vk.send(peer_id=6)
    assert reached(vk) == ["6"]


async def test_disconnect_after_stores_all_and_a_repeat_doubles_nothing(vk: Vk) -> None:
    vk.world.add_rule(Rule("vk", Fault("disconnect_after"), times=1))
    with pytest.raises((ClientError, ConnectionError)):
        await vk.execute(program(send(5, 6), send(7)))
    assert reached(vk) == ["5", "6", "7"]
    answer = await vk.execute(program(send(5, 6), send(7)))
    assert [entry["message_id"] for group in answer["response"] for entry in group] == [1, 2, 3]
    assert reached(vk) == ["5", "6", "7"]
    assert vk.world.counted("vk", "repeated") == 3


async def test_the_magic_disconnect_after_stores(vk: Vk) -> None:
    with pytest.raises((ClientError, ConnectionError)):
        await vk.send(peer_ids=[5, person("disconnect_after")])
    assert reached(vk) == ["5", str(person("disconnect_after"))]


async def test_timeout_never_answers_and_stores_nothing(vk: Vk) -> None:
    asking = asyncio.ensure_future(vk.execute(program(send(5), send(person("timeout")))))
    await until(lambda: vk.world.counted("vk", "calls") == 2)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asking, NEVER)
    assert reached(vk) == []


async def test_a_server_with_unanswered_requests_stops_soon(vk: Vk) -> None:
    asking = asyncio.ensure_future(vk.send(peer_id=person("timeout")))
    await until(lambda: vk.world.counted("vk", "calls") == 1)
    async with asyncio.timeout(5):
        await vk.server.stop()
        with pytest.raises((ClientError, ConnectionError)):
            await asking


# rules


@pytest.mark.parametrize("method", ["*", "execute"])
async def test_a_rule_for_the_request_strikes_as_often_as_it_says(vk: Vk, method: str) -> None:
    vk.world.add_rule(Rule("vk", Fault("request_error", 29), method=method, times=2))
    for _ in range(2):
        with pytest.raises(VKAPIError[29]):
            await vk.execute(program(send(5), send(6)))
    await vk.execute(program(send(5), send(6)))
    assert reached(vk) == ["5", "6"]


async def test_a_rule_for_the_call_counts_calls_not_people(vk: Vk) -> None:
    vk.world.add_rule(Rule("vk", Fault("call_error", 10), times=2))
    answer = await vk.execute(program(send(1, 2, 3), send(4, 5), send(6)))
    assert answer["response"] == [False, False, [{"peer_id": 6, "message_id": 1}]]


async def test_a_rule_for_the_call_strikes_calls_without_people(vk: Vk) -> None:
    vk.world.add_rule(Rule("vk", Fault("call_error", 10), method="users.get", times=1))
    answer = await vk.execute(
        "return [API.groups.getById(), API.users.get({user_ids: 5}), API.users.get({user_ids: 5})];"
    )
    assert [bool(one) for one in answer["response"]] == [True, False, True]
    assert answer["execute_errors"][0]["method"] == "users.get"


@pytest.mark.parametrize("method", ["*", "messages.send"])
async def test_a_rule_for_the_connection_counts_requests_not_people(vk: Vk, method: str) -> None:
    vk.world.add_rule(Rule("vk", Fault("stored_then_error"), method=method, times=2))
    for _ in range(2):
        with pytest.raises(NotJson):
            await vk.execute(program(send(1, 2, 3), send(4)))
    await vk.execute(program(send(1, 2, 3), send(4)))
    assert reached(vk) == ["1", "2", "3", "4"]


async def test_a_rule_for_one_person_strikes_him_alone(vk: Vk) -> None:
    vk.world.add_rule(Rule("vk", Fault("error", 9), "6", times=1))
    entries = await vk.send(peer_ids=[5, 6])
    assert ["error" in entry for entry in entries] == [False, True]
    assert all("error" not in entry for entry in await vk.send(peer_ids=[5, 6], random_id=2))


async def test_a_rule_comes_before_the_magic_of_an_address(vk: Vk) -> None:
    vk.world.add_rule(Rule("vk", Fault("error", 7), "900001", times=1))
    assert [(await vk.send(peer_ids=[900_001]))[0]["error"]["code"] for _ in range(2)] == [7, 901]


async def test_every_magic_recipient_is_played_here() -> None:
    played = {"error", "call_error", "peer_poison", "execute_errors_mismatch", "request_error", "too_fast"}
    played |= {"bad_gateway", "not_json", "stored_then_error", "disconnect_before", "disconnect_after", "timeout"}
    assert {fault.name for fault in BY_FAULT} == played
