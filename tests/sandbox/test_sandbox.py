"""The whole sandbox: actions of recipients, and the settings of a client."""

import socket
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession
from telethon import TelegramClient, events
from telethon.sessions import StringSession
from vkbottle import API

from cli.processes.embedded_valkey import free_port
from sandbox.sandbox import Ports, Sandbox
from sandbox.telegram import set_server, trust_server_key
from tests.sandbox.conftest import CallbackServer, WebClient
from tests.support.waiting import until

# actions of recipients


async def test_a_recipient_reads_and_writes_on_telegram(web_client: WebClient, sandbox: Sandbox) -> None:
    environment = sandbox.environment
    trust_server_key(environment["ADA_TELEGRAM_SERVER_KEY"])
    host, _, port = environment["ADA_TELEGRAM_SERVER"].rpartition(":")
    stored = StringSession()
    set_server(stored, host, int(port))
    api_id, api_hash = int(environment["ADA_TELEGRAM_API_ID"]), environment["ADA_TELEGRAM_API_HASH"]
    client = TelegramClient(stored, api_id, api_hash)
    received: list[str] = []
    client.add_event_handler(lambda event: _record(received, event), events.NewMessage(incoming=True))
    await client.start(bot_token=environment["ADA_TELEGRAM_BOT_TOKEN"])
    assert await web_client.call("POST", "write/telegram", {"address": 100_001, "text": "Здравствуйте"}) == (204, None)
    await until(lambda: received == ["Здравствуйте"])
    status, body = await web_client.call("POST", "read/telegram", {"address": "100001"})
    assert (status, body["notified"]) == (200, 0)
    await client.disconnect()


async def _record(received: list[str], event: Any) -> None:
    received.append(event.raw_text)


@pytest.mark.parametrize("body", [{"address": "abc", "text": "x"}, {"address": 5}, {"address": 5, "text": ""}])
async def test_writing_on_telegram_needs_an_id_and_a_text(web_client: WebClient, body: dict[str, Any]) -> None:
    assert (await web_client.call("POST", "write/telegram", body))[0] == 422


async def test_a_recipient_writes_an_sms(web_client: WebClient, callbacks: CallbackServer) -> None:
    body = {"address": "79990000001", "text": "hello"}
    status, problem = await web_client.call("POST", "write/sms", body)
    assert (status, problem["code"]) == (409, "NO_INBOUND_URL")
    url = f"{callbacks.url}/in?from=%p&text=%a"
    assert await web_client.call("POST", "write/sms", {**body, "url": url}) == (200, {"status": 200})
    assert callbacks.calls == [{"path": "/in", "from": "+79990000001", "text": "hello"}]


# the whole sandbox


async def test_the_environment_is_sufficient_for_clients(sandbox: Sandbox, session: ClientSession) -> None:
    environment = sandbox.environment
    api = API(environment["ADA_VK_TOKEN"])
    api.API_URL = environment["ADA_VK_API_URL"]
    await api.messages.send(peer_id=5, random_id=1, message="by VK")
    await api.http_client.close()
    sms = {name: environment[f"ADA_SMS_{name.upper()}"] for name in ("username", "password", "from")}
    async with session.get(environment["ADA_SMS_URL"], params={**sms, "to": "+7999", "text": "by SMS"}) as answer:
        assert answer.status == 202
    assert [(message.channel, message.text) for message in sandbox.state.inbox()] == [
        ("vk", "by VK"),
        ("sms", "by SMS"),
    ]
    assert sandbox.environment["ADA_VK_API_URL"].endswith("/method/")
    assert sandbox.environment["ADA_SMS_URL"].endswith("/cgi-bin/sendsms")


async def test_a_taken_port_starts_nothing(directory: Path, session: ClientSession) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        whole = Sandbox(directory, ports=Ports(web=taken.getsockname()[1]))
        with pytest.raises(OSError, match="in use"):
            await whole.start()
    with pytest.raises(ClientError):
        await session.get(whole.vk.url)


async def test_a_stopped_sandbox_frees_its_ports_and_starts_again(directory: Path) -> None:
    first = Sandbox(directory, ports=Ports(web=free_port(), vk=free_port()))
    await first.start()
    web_port, vk_port = first.web.port, first.vk.port
    await first.stop()
    await first.stop()
    second = Sandbox(directory, ports=Ports(web=web_port, vk=vk_port))
    await second.start()
    assert (second.web.port, second.vk.port) == (web_port, vk_port)
    assert second.environment["ADA_TELEGRAM_SERVER_KEY"] == first.environment["ADA_TELEGRAM_SERVER_KEY"]
    await second.stop()
