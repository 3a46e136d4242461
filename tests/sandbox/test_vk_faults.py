"""Every fault of the VK sandbox, by magic recipient and by rule."""

import asyncio
import contextlib
import json

import pytest
from aiohttp import ClientError, ClientPayloadError, ServerDisconnectedError
from vkbottle import CaptchaError, VKAPIError

from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault, Rule
from tests.sandbox.conftest import NotJson, Vk
from tests.sandbox.test_vk import entry
from tests.support.waiting import until

NEVER = 0.3  # seconds; a normal answer takes less than a hundredth of it
BY_FAULT = {fault: int(address) for address, fault in MAGIC_RECIPIENTS["vk"].items()}


def codes(name: str) -> list[int]:
    return [fault.value for fault in BY_FAULT if fault.name == name and fault.value is not None]


def peer(name: str, value: int | None = None) -> int:
    return BY_FAULT[Fault(name, value)]


def send(*peers: int, random_id: int = 1) -> str:
    message = json.dumps({"peer_ids": peers, "message": "hello", "random_id": random_id})
    return f"API.messages.send({message})"


def code_of(*calls: str) -> str:
    return f"return [{','.join(calls)}];"


def recipients(vk: Vk) -> list[str]:
    return [received.address for received in vk.state.inbox("vk")]


@pytest.mark.parametrize("code", codes("error"))
async def test_error_is_in_the_entry_of_its_peer_only(vk: Vk, code: int) -> None:
    magic = peer("error", code)
    good, bad, other = await vk.send(peer_ids=[5, magic, 6])
    assert bad["message_id"] == 0
    assert (bad["peer_id"], bad["error"]["code"]) == (magic, code)
    assert bad["error"]["description"] not in ("", "Unknown error")
    assert (good["message_id"], other["message_id"]) == (1, 2)
    assert recipients(vk) == ["5", "6"]


@pytest.mark.parametrize("code", codes("error"))
async def test_error_fails_a_call_with_a_single_peer(vk: Vk, code: int) -> None:
    with pytest.raises(VKAPIError) as refused:
        await vk.send(peer_id=peer("error", code))
    assert refused.value.code == code


@pytest.mark.parametrize("code", codes("call_error"))
async def test_call_error_fails_its_call_as_a_whole(vk: Vk, code: int) -> None:
    answer = await vk.execute(code_of(send(5), send(6, peer("call_error", code)), send(7)))
    assert answer["response"] == [[entry(5, 1)], False, [entry(7, 2)]]
    assert [(one["method"], one["error_code"]) for one in answer["execute_errors"]] == [("messages.send", code)]
    assert recipients(vk) == ["5", "7"]


async def test_peer_poison_fails_the_call_without_naming_the_peer(vk: Vk) -> None:
    poison = peer("peer_poison")
    answer = await vk.execute(code_of(send(5, poison, 6), send(7, 8)))
    assert answer["response"][0] is False
    assert answer["execute_errors"][0]["error_code"] == 100
    assert str(poison) not in answer["execute_errors"][0]["error_msg"]
    assert recipients(vk) == ["7", "8"]


async def test_execute_errors_mismatch_leaves_a_false_without_its_entry(vk: Vk) -> None:
    answer = await vk.execute(code_of(send(peer("execute_errors_mismatch")), send(5), send(peer("call_error", 9))))
    assert answer["response"] == [False, [entry(5, 1)], False]
    assert [one["error_code"] for one in answer["execute_errors"]] == [9]


@pytest.mark.parametrize("code", codes("request_error"))
async def test_request_error_fails_the_whole_request(vk: Vk, code: int) -> None:
    with pytest.raises(VKAPIError) as refused:
        await vk.execute(code_of(send(5), send(6, peer("request_error", code))))
    assert refused.value.code == code
    assert recipients(vk) == []


async def test_a_captcha_has_a_picture(vk: Vk) -> None:
    with pytest.raises(CaptchaError) as refused:
        await vk.execute(code_of(send(peer("request_error", 14))))
    assert refused.value.captcha_sid
    assert refused.value.captcha_img


async def test_too_fast_is_error_6(vk: Vk) -> None:
    with pytest.raises(VKAPIError[6], match="Too many requests per second"):
        await vk.execute(code_of(send(5, peer("too_fast"))))
    assert recipients(vk) == []


async def test_requests_beyond_a_rate_limit_are_refused_and_do_not_count(vk: Vk) -> None:
    vk.state.add_rule(Rule("vk", Fault("rate_limit", 3)))
    for number in range(3):
        await vk.execute(code_of(send(5, 6, random_id=number + 1), send(7, random_id=number + 1)))
    for _ in range(2):
        with pytest.raises(VKAPIError[6], match="Too many requests per second"):
            await vk.execute(code_of(send(5, random_id=9)))
    assert len(recipients(vk)) == 9
    assert vk.state.counter("vk", "refused") == 2

    async def is_accepted() -> bool:
        with contextlib.suppress(VKAPIError[6]):
            return bool(await vk.execute(code_of(send(8))))
        return False

    await until(is_accepted)


@pytest.mark.parametrize(("name", "status"), [("bad_gateway", 502), ("not_json", 200), ("stored_then_error", 500)])
async def test_html_pages_instead_of_a_response(vk: Vk, name: str, status: int) -> None:
    code = code_of(send(5), send(peer(name)))
    with pytest.raises(NotJson, match="<html>"):
        await vk.execute(code)
    query = {"access_token": vk.server.token, "v": "5.199", "code": code}
    answer = await vk.api.http_client.request_raw(vk.server.url + "execute", method="POST", params=query)
    assert (answer.status, answer.content_type) == (status, "text/html")
    assert recipients(vk) == (["5", str(peer(name))] if name == "stored_then_error" else [])


async def test_disconnect_before_stores_nothing(vk: Vk) -> None:
    with pytest.raises((ServerDisconnectedError, ClientPayloadError, ConnectionError)):
        await vk.execute(code_of(send(5), send(peer("disconnect_before"))))
    assert recipients(vk) == []
    await vk.send(peer_id=6)
    assert recipients(vk) == ["6"]


async def test_disconnect_after_stores_all_and_a_repeat_stores_nothing_twice(vk: Vk) -> None:
    vk.state.add_rule(Rule("vk", Fault("disconnect_after"), times=1))
    with pytest.raises((ClientError, ConnectionError)):
        await vk.execute(code_of(send(5, 6), send(7)))
    assert recipients(vk) == ["5", "6", "7"]
    answer = await vk.execute(code_of(send(5, 6), send(7)))
    assert [entry["message_id"] for group in answer["response"] for entry in group] == [1, 2, 3]
    assert recipients(vk) == ["5", "6", "7"]
    assert vk.state.counter("vk", "repeated") == 3


async def test_a_stored_message_is_refused_when_it_is_repeated(vk: Vk) -> None:
    magic = peer("stored_then_refused")
    with pytest.raises(NotJson):
        await vk.send(peer_ids=[5, magic])
    assert recipients(vk) == ["5", str(magic)]
    good, bad = await vk.send(peer_ids=[5, magic])
    assert (good["message_id"], bad["error"]["code"]) == (1, 901)
    assert recipients(vk) == ["5", str(magic)]


async def test_the_magic_disconnect_after_stores(vk: Vk) -> None:
    with pytest.raises((ClientError, ConnectionError)):
        await vk.send(peer_ids=[5, peer("disconnect_after")])
    assert recipients(vk) == ["5", str(peer("disconnect_after"))]


async def test_timeout_never_answers_and_stores_nothing(vk: Vk) -> None:
    request = asyncio.ensure_future(vk.execute(code_of(send(5), send(peer("timeout")))))
    await until(lambda: vk.state.counter("vk", "calls") == 2)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(request, NEVER)
    assert recipients(vk) == []


async def test_a_server_with_unanswered_requests_stops_quickly(vk: Vk) -> None:
    request = asyncio.ensure_future(vk.send(peer_id=peer("timeout")))
    await until(lambda: vk.state.counter("vk", "calls") == 1)
    async with asyncio.timeout(20):
        await vk.server.stop()
        with pytest.raises((ClientError, ConnectionError)):
            await request


# rules


@pytest.mark.parametrize("method", ["*", "execute"])
async def test_a_rule_for_requests_applies_the_given_number_of_times(vk: Vk, method: str) -> None:
    vk.state.add_rule(Rule("vk", Fault("request_error", 29), method=method, times=2))
    for _ in range(2):
        with pytest.raises(VKAPIError[29]):
            await vk.execute(code_of(send(5), send(6)))
    await vk.execute(code_of(send(5), send(6)))
    assert recipients(vk) == ["5", "6"]


async def test_a_rule_for_calls_counts_calls_not_recipients(vk: Vk) -> None:
    vk.state.add_rule(Rule("vk", Fault("call_error", 10), times=2))
    answer = await vk.execute(code_of(send(1, 2, 3), send(4, 5), send(6)))
    assert answer["response"] == [False, False, [entry(6, 1)]]


async def test_a_rule_for_calls_applies_to_calls_without_recipients(vk: Vk) -> None:
    vk.state.add_rule(Rule("vk", Fault("call_error", 10), method="users.get", times=1))
    answer = await vk.execute(
        "return [API.groups.getById(), API.users.get({user_ids: 5}), API.users.get({user_ids: 5})];"
    )
    assert [bool(one) for one in answer["response"]] == [True, False, True]
    assert answer["execute_errors"][0]["method"] == "users.get"


@pytest.mark.parametrize("method", ["*", "messages.send"])
async def test_a_rule_for_connections_counts_requests_not_recipients(vk: Vk, method: str) -> None:
    vk.state.add_rule(Rule("vk", Fault("stored_then_error"), method=method, times=2))
    for _ in range(2):
        with pytest.raises(NotJson):
            await vk.execute(code_of(send(1, 2, 3), send(4)))
    await vk.execute(code_of(send(1, 2, 3), send(4)))
    assert recipients(vk) == ["1", "2", "3", "4"]


async def test_a_rule_for_one_recipient_applies_to_it_only(vk: Vk) -> None:
    vk.state.add_rule(Rule("vk", Fault("error", 9), "6", times=1))
    entries = await vk.send(peer_ids=[5, 6])
    assert ["error" in entry for entry in entries] == [False, True]
    assert all("error" not in entry for entry in await vk.send(peer_ids=[5, 6], random_id=2))


async def test_a_rule_precedes_a_magic_recipient(vk: Vk) -> None:
    vk.state.add_rule(Rule("vk", Fault("error", 7), "900001", times=1))
    assert [(await vk.send(peer_ids=[900_001]))[0]["error"]["code"] for _ in range(2)] == [7, 901]


async def test_every_magic_recipient_is_tested_here() -> None:
    tested = {"error", "call_error", "peer_poison", "execute_errors_mismatch", "request_error", "too_fast"}
    tested |= {"bad_gateway", "not_json", "stored_then_error", "disconnect_before", "disconnect_after", "timeout"}
    tested |= {"rate_limit", "stored_then_refused"}
    assert {fault.name for fault in BY_FAULT} == tested
