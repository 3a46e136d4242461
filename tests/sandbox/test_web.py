"""The sandbox's HTTP API; test_page.py has the page."""

import asyncio
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.faults import FAULTS
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault
from tests.sandbox.conftest import WebClient

# the inbox


async def test_the_inbox_shows_received_messages(web_client: WebClient) -> None:
    web_client.state.receive("vk", "5", "<b>Привет</b> 😀\u2028", reference="77", random_id=9)
    web_client.state.receive("sms", "+7999", "two", reference="x")
    body = await web_client.get("inbox.json")
    assert body["newest"] == 2
    first, second = body["messages"]
    assert first.pop("at") > 0
    assert first == {
        "number": 1,
        "channel": "vk",
        "address": "5",
        "text": "<b>Привет</b> 😀\u2028",
        "reference": "77",
        "random_id": 9,
        "subject": "",
    }
    assert (second["number"], second["random_id"]) == (2, None)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({}, [1, 2, 3, 4]),
        ({"channel": "vk"}, [1, 3]),
        ({"channel": "vk", "address": "6"}, [3]),
        ({"channel": "sms", "address": " 7999"}, [2]),
        ({"channel": "sms", "address": "7999"}, [2]),
        ({"address": "5"}, [1, 4]),
        ({"after": "2"}, [3, 4]),
        ({"after": "1", "limit": "2"}, [2, 3]),
        ({"after": "9"}, []),
    ],
)
async def test_the_inbox_is_filtered(web_client: WebClient, query: dict[str, str], numbers: list[int]) -> None:
    for channel, address in [("vk", "5"), ("sms", "+7999"), ("vk", "6"), ("telegram", "5")]:
        web_client.state.receive(channel, address, "x", reference="r")
    assert [one["number"] for one in (await web_client.get("inbox.json", **query))["messages"]] == numbers


async def test_a_reader_waits_for_a_matching_message(web_client: WebClient) -> None:
    request = asyncio.ensure_future(web_client.get("inbox.json", channel="vk", address="5", wait="30"))
    await asyncio.wait([request], timeout=0.1)
    web_client.state.receive("vk", "6", "other", reference="1")
    await asyncio.wait([request], timeout=0.1)
    assert not request.done()
    web_client.state.receive("vk", "5", "matching", reference="2")
    async with asyncio.timeout(20):
        assert [one["text"] for one in (await request)["messages"]] == ["matching"]


async def test_a_reader_gets_an_empty_list_after_the_wait(web_client: WebClient) -> None:
    assert (await web_client.get("inbox.json", wait="1"))["messages"] == []


async def test_the_inbox_is_cleared_and_the_numbers_continue(web_client: WebClient) -> None:
    web_client.state.receive("vk", "5", "x", reference="1")
    assert await web_client.call("DELETE", "inbox") == (204, None)
    web_client.state.receive("vk", "5", "y", reference="2")
    assert [(one["number"], one["text"]) for one in (await web_client.get("inbox.json"))["messages"]] == [(2, "y")]


# state, magic, rules


async def test_the_state(web_client: WebClient) -> None:
    web_client.state.receive("vk", "5", "x", reference="1")
    web_client.state.count("vk", "execute")
    assert await web_client.get("state.json") == {
        "counters": {"vk": {"execute": 1}},
        "inbox": {"stored": 1, "newest": 1, "people": {"vk": 1}},
        "environment": web_client.sandbox.environment,
        "console": "",
    }


async def test_the_magic_recipients(web_client: WebClient) -> None:
    shown = await web_client.get("magic.json")
    assert {
        channel: {one["address"]: Fault(one["name"], one["value"]) for one in table} for channel, table in shown.items()
    } == MAGIC_RECIPIENTS
    assert all(one["means"] == FAULTS["sms"][one["name"]].meaning for one in shown["sms"])


async def test_rules_are_added_listed_struck_and_cleared(web_client: WebClient) -> None:
    rule = {"channel": "vk", "address": 5, "method": "messages.send", "fault": "error", "value": 9, "times": 2}
    shown = {**rule, "address": "5", "number": 1}
    assert await web_client.call("POST", "rules", rule) == (201, shown)
    status, second = await web_client.call("POST", "rules", {"channel": "sms", "fault": "busy", "address": "7999"})
    assert (status, second["address"], second["method"], second["times"]) == (201, "+7999", "*", None)
    assert web_client.state.fault("vk", "5", "messages.send") == Fault("error", 9)
    assert web_client.state.fault("sms", "+7999", "sendsms") == Fault("busy")
    assert (await web_client.get("rules"))["rules"] == [{**shown, "times": 1}, second]
    assert await web_client.call("DELETE", "rules") == (204, None)
    assert (await web_client.get("rules"))["rules"] == []


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, {"channel", "fault"}),
        ({"channel": "mail", "fault": "busy"}, {"channel"}),
        ({"channel": "sms", "fault": "nosuch"}, {"fault"}),
        ({"channel": "vk", "fault": "busy"}, {"fault"}),
        ({"channel": "vk", "fault": "error"}, {"value"}),
        ({"channel": "sms", "fault": "busy", "value": 1}, {"value"}),
        ({"channel": "vk", "fault": "error", "value": "x"}, {"value"}),
        ({"channel": "vk", "fault": "error", "value": 1.5}, {"value"}),
        ({"channel": "sms", "fault": "busy", "times": 0}, {"times"}),
        ({"channel": "sms", "fault": "busy", "times": True}, {"times"}),
        ({"channel": "sms", "fault": "busy", "address": ""}, {"address"}),
        ({"channel": "sms", "fault": "busy", "adress": "*"}, {"adress"}),
        ({"channel": ["sms"], "fault": None}, {"channel", "fault"}),
    ],
)
async def test_an_invalid_rule_is_refused_with_all_errors(
    web_client: WebClient, body: dict[str, Any], wrong: set[str]
) -> None:
    status, problem = await web_client.call("POST", "rules", body)
    assert (status, problem["status"], problem["code"]) == (422, 422, "VALIDATION_FAILED")
    assert {error["path"] for error in problem["errors"]} >= wrong
    assert web_client.state.rules() == {}


WRITING = (
    *("rules", "people", "write/telegram", "write/vk", "write/sms", "write/telegram-bot"),
    *("read/telegram", "read/vk", "press/telegram-bot"),
)

NO_OBJECTS = (
    (b"", 400, "INVALID_JSON"),
    (b"{", 400, "INVALID_JSON"),
    (b"\xff\xfe", 400, "INVALID_JSON"),
    (b"[" * 100_000, 400, "INVALID_JSON"),
    (b"9" * 5000, 400, "INVALID_JSON"),
    (b"[]", 422, "VALIDATION_FAILED"),
    (b"null", 422, "VALIDATION_FAILED"),
    (b" " * 2_000_000, 413, "TOO_LARGE"),
)


async def test_a_body_that_is_not_an_object_is_a_problem(web_client: WebClient) -> None:
    wrong = []
    for path, (data, status, code) in product(WRITING, NO_OBJECTS):
        answer = await web_client.raw("POST", path, data)
        if (answer[0], answer[1], answer[2]["code"]) != (status, "application/problem+json", code):
            wrong.append((path, data[:10], answer))
    assert wrong == []


async def test_an_unknown_charset_is_a_problem(web_client: WebClient) -> None:
    kind = {"Content-Type": "application/json; charset=nosuch"}
    assert (await web_client.raw("POST", "rules", b"{}", **kind))[2]["code"] == "INVALID_JSON"


@pytest.mark.parametrize(
    "query",
    [
        {"channel": "mail"},
        {"after": "x"},
        {"after": "-1"},
        {"limit": "0"},
        {"limit": "99999"},
        {"wait": "31"},
        {"x": "1"},
    ],
)
async def test_an_invalid_query_is_a_problem(web_client: WebClient, query: dict[str, str]) -> None:
    status, problem = await web_client.call("GET", "inbox.json", **query)
    assert (status, problem["errors"][0]["path"]) == (422, next(iter(query)))


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "nosuch", "NOT_FOUND"), ("POST", "write/nosuch", "NOT_FOUND"), ("PUT", "rules", "METHOD_NOT_ALLOWED")],
)
async def test_an_unknown_route_is_a_problem(web_client: WebClient, method: str, path: str, code: str) -> None:
    assert (await web_client.call(method, path))[1]["code"] == code


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(
    ["channel", "fault", "address", "method", "value", "times", "text", "message", "button", "chat", "name", "email"]
)
known = st.sampled_from([*FAULTS, "error", "busy", "flood_wait", "*", "5", 1, 2**31, 2**64])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(
        [
            *("rules", "people", "write/telegram", "write/vk", "write/sms", "write/telegram-bot"),
            *("read/telegram", "read/vk", "press/telegram-bot"),
        ]
    ),
    body=st.dictionaries(fields, known | anything, max_size=6) | anything,
)
async def test_no_body_makes_the_sandbox_fail(web_client: WebClient, path: str, body: Any) -> None:
    assert (await web_client.call("POST", path, body))[0] < 500


@pytest.mark.parametrize("chat", [-70001, -(2**52)])
async def test_the_group_that_a_member_of_max_sees_is_named_in_the_query(web_client: WebClient, chat: int) -> None:
    written = {"address": 300001, "text": "in the group", "chat": chat}
    assert (await web_client.call("POST", "write/max", written))[0] == 200
    shown = await web_client.get("chat/max", address="300001", chat=str(chat))
    assert [one["text"] for one in shown["messages"]] == ["in the group"]
