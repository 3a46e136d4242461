"""The Telegram sandbox with unmodified Telethon clients, over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest
from telethon import TelegramClient, errors
from telethon.sessions import StringSession
from telethon.tl import functions as f
from telethon.tl import types as t

from cli.processes.embedded_valkey import free_port
from sandbox.state import Fault, Rule, SandboxState
from sandbox.telegram import TelegramServer, set_server, trust_server_key

BOT = "4242:sandbox"
USER = 100_001
NEVER = 0.2  # seconds; a normal answer takes less than a hundredth of it


class TelegramSandbox:
    """A server and the clients that a test opened on it."""

    def __init__(self, directory: Path) -> None:
        self.state, self.directory, self.time = SandboxState(), directory, 1000.0
        self.port = free_port()
        self.server = self._new_server()
        self.clients: list[TelegramClient] = []

    def _new_server(self) -> TelegramServer:
        return TelegramServer(self.state, self.directory, port=self.port, clock=lambda: self.time)

    async def restart(self) -> None:
        await self.server.stop()
        self.server = self._new_server()
        await self.server.start()

    async def client(self, session: str | None = None, **options: Any) -> TelegramClient:
        """Return a connected Telethon that does not wait for flood waits and does not repeat requests."""
        string_session = StringSession(session)
        if session is None:
            set_server(string_session, self.server.host, self.server.port)
        options = {"flood_sleep_threshold": 0, "request_retries": 0, "raise_last_call_error": True, **options}
        client = TelegramClient(string_session, 1, "hash", **options)
        self.clients.append(client)
        await client.connect()
        return client

    async def bot(self, token: str = BOT, **options: Any) -> TelegramClient:
        client = await self.client(**options)
        await client.sign_in(bot_token=token)
        return client

    async def user(self, phone: str = "+79990000077", **options: Any) -> TelegramClient:
        client = await self.client(**options)
        await client.send_code_request(phone)
        await client.sign_in(phone, "22222")
        return client

    def inject_fault(
        self, name: str, value: int | None = None, *, times: int | None = 1, method: str = "sendMessage"
    ) -> None:
        self.state.add_rule(Rule("telegram", Fault(name, value), method=method, times=times))

    def texts(self, address: int | str = USER) -> list[str]:
        return [message.text for message in self.state.inbox("telegram", str(address))]


@pytest.fixture
async def telegram(tmp_path: Path) -> AsyncIterator[TelegramSandbox]:
    sandbox = TelegramSandbox(tmp_path)
    trust_server_key(sandbox.server.public_key_pem)
    await sandbox.server.start()
    yield sandbox
    for client in sandbox.clients:
        await client.disconnect()
    await sandbox.server.stop()


def send(text: str = "hello", *, to: int = USER, random_id: int = 1, access_hash: int = 0) -> Any:
    return f.messages.SendMessageRequest(t.InputPeerUser(to, access_hash), text, random_id=random_id)


async def request_once(client: TelegramClient, request: Any) -> Any:
    """Send a request without Telethon's pause of two seconds after a server error."""
    return await client._sender.send(request)


async def rpc_error(client: TelegramClient, request: Any) -> tuple[int, str]:
    """Return the code and text of the RPC error as received; Telethon's own classes change them."""
    seen: list[tuple[int, str]] = []
    handler = client._sender._handlers[0xF35C6D01]

    async def watch(message: Any) -> None:
        if message.obj.error:
            seen.append((message.obj.error.error_code, message.obj.error.error_message))
        await handler(message)

    client._sender._handlers[0xF35C6D01] = watch
    with pytest.raises(errors.RPCError):
        await request_once(client, request)
    client._sender._handlers[0xF35C6D01] = handler
    return seen[-1]


async def assert_no_answer(waiting: Awaitable[Any]) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(waiting, NEVER)


async def record(received: list[Any], item: Any) -> None:
    received.append(item)
