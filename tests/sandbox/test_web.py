"""The sandbox's page and calls, and the sandbox as a whole."""

import asyncio
import re
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from telethon import TelegramClient, events
from telethon.sessions import StringSession
from vkbottle import API

from sandbox import web
from sandbox.faults import FAULTS
from sandbox.magic import MAGIC
from sandbox.sandbox import Sandbox
from sandbox.telegram import point, trust
from sandbox.world import Fault
from tests.sandbox.conftest import Listening
from tests.waiting import until

pytestmark = pytest.mark.row("D-43")

PAGE = Path(web.__file__).with_name("page.html").read_text()


class Visitor:
    """Somebody with a browser, or curl."""

    def __init__(self, sandbox: Sandbox, session: ClientSession) -> None:
        self.sandbox, self.world, self._session = sandbox, sandbox.world, session

    async def ask(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        address = self.sandbox.page_url + path
        async with self._session.request(method, address, json=body, params=query) as answer:
            return answer.status, (await answer.json(content_type=None)) if answer.status != 204 else None

    async def get(self, path: str, **query: str) -> Any:
        status, body = await self.ask("GET", path, **query)
        assert status == 200
        return body

    async def raw(self, method: str, path: str, data: bytes, **headers: str) -> tuple[int, str, Any]:
        async with self._session.request(method, self.sandbox.page_url + path, data=data, headers=headers) as answer:
            return answer.status, answer.content_type, await answer.json(content_type=None)


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all sandboxes of a worker: the RSA key in it is made once."""
    return tmp_path_factory.mktemp("sandbox")


@pytest.fixture
async def sandbox(directory: Path) -> AsyncIterator[Sandbox]:
    whole = Sandbox(directory)
    await whole.start()
    yield whole
    await whole.stop()


@pytest.fixture
def visitor(sandbox: Sandbox, session: ClientSession) -> Visitor:
    return Visitor(sandbox, session)


# the page


async def test_the_page_needs_no_outside_host_and_makes_no_markup_of_texts(
    sandbox: Sandbox, session: ClientSession
) -> None:
    async with session.get(sandbox.page_url) as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert await answer.text() == PAGE
    assert not re.findall(r"https?:|//[a-z]|\bsrc=|@import|url\(", PAGE)
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", PAGE)


def test_the_script_of_the_page_parses(tmp_path: Path) -> None:
    script = tmp_path / "page.js"
    script.write_text(re.findall(r"<script>(.*?)</script>", PAGE, re.DOTALL)[0])
    try:
        checked = subprocess.run(["node", "--check", script], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("needs the package nodejs: node not found")
    assert checked.returncode == 0, checked.stderr


def test_the_page_asks_for_what_the_server_has() -> None:
    assert set(re.findall(r'json\("([a-z.]+)"\)|"(inbox\.json)', PAGE)) == {
        ("state.json", ""),
        ("rules", ""),
        ("", "inbox.json"),
    }


# the inbox


async def test_the_inbox_shows_who_received_what(visitor: Visitor) -> None:
    visitor.world.receive("vk", "5", "<b>Привет</b> 😀\u2028", reference="77", random_id=9)
    visitor.world.receive("sms", "+7999", "two", reference="x")
    body = await visitor.get("inbox.json")
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
async def test_the_inbox_is_filtered(visitor: Visitor, query: dict[str, str], numbers: list[int]) -> None:
    for channel, address in [("vk", "5"), ("sms", "+7999"), ("vk", "6"), ("telegram", "5")]:
        visitor.world.receive(channel, address, "x", reference="r")
    assert [one["number"] for one in (await visitor.get("inbox.json", **query))["messages"]] == numbers


async def test_a_reader_waits_for_his_message(visitor: Visitor) -> None:
    asking = asyncio.ensure_future(visitor.get("inbox.json", channel="vk", address="5", wait="30"))
    await asyncio.wait([asking], timeout=0.1)
    visitor.world.receive("vk", "6", "not his", reference="1")
    await asyncio.wait([asking], timeout=0.1)
    assert not asking.done()
    visitor.world.receive("vk", "5", "his", reference="2")
    async with asyncio.timeout(5):
        assert [one["text"] for one in (await asking)["messages"]] == ["his"]


async def test_a_reader_who_waits_in_vain_gets_an_empty_list(visitor: Visitor) -> None:
    assert (await visitor.get("inbox.json", wait="1"))["messages"] == []


async def test_the_inbox_is_emptied_and_the_numbers_go_on(visitor: Visitor) -> None:
    visitor.world.receive("vk", "5", "x", reference="1")
    assert await visitor.ask("DELETE", "inbox") == (204, None)
    visitor.world.receive("vk", "5", "y", reference="2")
    assert [(one["number"], one["text"]) for one in (await visitor.get("inbox.json"))["messages"]] == [(2, "y")]


# state, magic, rules


async def test_the_state(visitor: Visitor) -> None:
    visitor.world.receive("vk", "5", "x", reference="1")
    visitor.world.count("vk", "execute")
    assert await visitor.get("state.json") == {
        "counters": {"vk": {"execute": 1}},
        "inbox": {"stored": 1, "newest": 1, "people": {"vk": 1}},
        "environment": visitor.sandbox.environment,
    }


async def test_the_magic_recipients(visitor: Visitor) -> None:
    shown = await visitor.get("magic.json")
    assert {
        channel: {one["address"]: Fault(one["name"], one["value"]) for one in table} for channel, table in shown.items()
    } == MAGIC
    assert all(one["means"] == FAULTS["sms"][one["name"]].means for one in shown["sms"])


async def test_rules_are_added_listed_struck_and_cleared(visitor: Visitor) -> None:
    rule = {"channel": "vk", "address": 5, "method": "messages.send", "fault": "error", "value": 9, "times": 2}
    shown = {**rule, "address": "5", "number": 1}
    assert await visitor.ask("POST", "rules", rule) == (201, shown)
    status, second = await visitor.ask("POST", "rules", {"channel": "sms", "fault": "busy", "address": "7999"})
    assert (status, second["address"], second["method"], second["times"]) == (201, "+7999", "*", None)
    assert visitor.world.fault("vk", "5", "messages.send") == Fault("error", 9)
    assert visitor.world.fault("sms", "+7999", "sendsms") == Fault("busy")
    assert (await visitor.get("rules"))["rules"] == [{**shown, "times": 1}, second]
    assert await visitor.ask("DELETE", "rules") == (204, None)
    assert (await visitor.get("rules"))["rules"] == []


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
async def test_a_wrong_rule_is_refused_with_all_that_is_wrong(
    visitor: Visitor, body: dict[str, Any], wrong: set[str]
) -> None:
    status, problem = await visitor.ask("POST", "rules", body)
    assert (status, problem["status"], problem["code"]) == (422, 422, "VALIDATION_FAILED")
    assert {flaw["path"] for flaw in problem["errors"]} >= wrong
    assert visitor.world.rules() == {}


@pytest.mark.parametrize("path", ["rules", "write/telegram", "write/sms", "read/telegram"])
@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"", 400, "INVALID_JSON"),
        (b"{", 400, "INVALID_JSON"),
        (b"\xff\xfe", 400, "INVALID_JSON"),
        (b"[" * 100_000, 400, "INVALID_JSON"),
        (b"9" * 5000, 400, "INVALID_JSON"),
        (b"[]", 422, "VALIDATION_FAILED"),
        (b"null", 422, "VALIDATION_FAILED"),
        (b" " * 2_000_000, 413, "TOO_LARGE"),
    ],
)
async def test_a_body_that_is_no_object_is_a_problem(
    visitor: Visitor, path: str, data: bytes, status: int, code: str
) -> None:
    answer = await visitor.raw("POST", path, data)
    assert (answer[0], answer[1], answer[2]["code"]) == (status, "application/problem+json", code)


async def test_an_unknown_charset_is_a_problem(visitor: Visitor) -> None:
    kind = {"Content-Type": "application/json; charset=nosuch"}
    assert (await visitor.raw("POST", "rules", b"{}", **kind))[2]["code"] == "INVALID_JSON"


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
async def test_a_wrong_query_is_a_problem(visitor: Visitor, query: dict[str, str]) -> None:
    status, problem = await visitor.ask("GET", "inbox.json", **query)
    assert (status, problem["errors"][0]["path"]) == (422, next(iter(query)))


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "nosuch", "NOT_FOUND"), ("POST", "write/vk", "NOT_FOUND"), ("PUT", "rules", "METHOD_NOT_ALLOWED")],
)
async def test_an_unknown_call_is_a_problem(visitor: Visitor, method: str, path: str, code: str) -> None:
    assert (await visitor.ask(method, path))[1]["code"] == code


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(["channel", "fault", "address", "method", "value", "times", "text"])
known = st.sampled_from([*FAULTS, "error", "busy", "flood_wait", "*", "5", 1, 2**31, 2**64])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["rules", "write/telegram", "read/telegram", "write/sms"]),
    body=st.dictionaries(fields, known | anything, max_size=6) | anything,
)
async def test_no_body_makes_the_sandbox_fail(visitor: Visitor, path: str, body: Any) -> None:
    assert (await visitor.ask("POST", path, body))[0] < 500


# people


async def test_a_person_reads_and_writes_on_telegram(visitor: Visitor, sandbox: Sandbox) -> None:
    environment = sandbox.environment
    trust(environment["ADA_TELEGRAM_SERVER_KEY"])
    host, _, port = environment["ADA_TELEGRAM_SERVER"].rpartition(":")
    stored = StringSession()
    point(stored, host, int(port))
    api_id, api_hash = int(environment["ADA_TELEGRAM_API_ID"]), environment["ADA_TELEGRAM_API_HASH"]
    client = TelegramClient(stored, api_id, api_hash)
    heard: list[str] = []
    client.add_event_handler(lambda event: _note(heard, event), events.NewMessage(incoming=True))
    await client.start(bot_token=environment["ADA_TELEGRAM_BOT_TOKEN"])
    assert await visitor.ask("POST", "write/telegram", {"address": 100_001, "text": "Здравствуйте"}) == (204, None)
    await until(lambda: heard == ["Здравствуйте"])
    status, body = await visitor.ask("POST", "read/telegram", {"address": "100001"})
    assert (status, body["told"]) == (200, 0)
    await client.disconnect()


async def _note(heard: list[str], event: Any) -> None:
    heard.append(event.raw_text)


@pytest.mark.parametrize("body", [{"address": "abc", "text": "x"}, {"address": 5}, {"address": 5, "text": ""}])
async def test_nobody_writes_on_telegram_without_an_id_or_a_text(visitor: Visitor, body: dict[str, Any]) -> None:
    assert (await visitor.ask("POST", "write/telegram", body))[0] == 422


async def test_a_person_writes_an_sms(visitor: Visitor, listening: Listening) -> None:
    body = {"address": "79990000001", "text": "hello"}
    status, problem = await visitor.ask("POST", "write/sms", body)
    assert (status, problem["code"]) == (409, "NO_INBOUND_URL")
    url = f"{listening.url}/in?from=%p&text=%a"
    assert await visitor.ask("POST", "write/sms", {**body, "url": url}) == (200, {"status": 200})
    assert listening.calls == [{"path": "/in", "from": "+79990000001", "text": "hello"}]


# the whole


async def test_the_environment_is_all_that_a_client_needs(sandbox: Sandbox, session: ClientSession) -> None:
    environment = sandbox.environment
    api = API(environment["ADA_VK_TOKEN"])
    api.API_URL = environment["ADA_VK_API_URL"]
    await api.messages.send(peer_id=5, random_id=1, message="by VK")
    await api.http_client.close()
    sms = {name: environment[f"ADA_SMS_{name.upper()}"] for name in ("username", "password", "from")}
    async with session.get(environment["ADA_SMS_URL"], params={**sms, "to": "+7999", "text": "by SMS"}) as answer:
        assert answer.status == 202
    assert [(one.channel, one.text) for one in sandbox.world.inbox()] == [("vk", "by VK"), ("sms", "by SMS")]
    assert sandbox.environment["ADA_VK_API_URL"].endswith("/method/")
    assert sandbox.environment["ADA_SMS_URL"].endswith("/cgi-bin/sendsms")


async def test_a_taken_port_starts_nothing(directory: Path, session: ClientSession) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        whole = Sandbox(directory, web_port=taken.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            await whole.start()
    with pytest.raises(ClientError):
        await session.get(whole.vk.url)


async def test_a_stopped_sandbox_frees_its_ports_and_starts_again(directory: Path) -> None:
    first = Sandbox(directory)
    await first.start()
    web_port, vk_port = first.web.port, first.vk.port
    await first.stop()
    await first.stop()
    second = Sandbox(directory, web_port=web_port, vk_port=vk_port)
    await second.start()
    assert (second.web.port, second.vk.port) == (web_port, vk_port)
    assert second.environment["ADA_TELEGRAM_SERVER_KEY"] == first.environment["ADA_TELEGRAM_SERVER_KEY"]
    await second.stop()
