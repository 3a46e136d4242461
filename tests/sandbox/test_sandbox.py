"""The sandbox as a whole: what people do, and what a client needs."""

import socket
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession
from telethon import TelegramClient, events
from telethon.sessions import StringSession
from vkbottle import API

from sandbox.sandbox import Sandbox
from sandbox.telegram import point, trust
from tests.sandbox.conftest import Listening, Visitor
from tests.support.waiting import until

pytestmark = pytest.mark.row("D-43")


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
