"""The sandbox's Telegram with the unmodified Telethons that a test opens on it, over real sockets."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest
from telethon import TelegramClient, errors
from telethon.sessions import StringSession
from telethon.tl import functions as f
from telethon.tl import types as t

from sandbox.state import Fault, Rule, World
from sandbox.telegram import TelegramServer, point, trust

BOT = "4242:sandbox"
PERSON = 100_001
NEVER = 0.2  # seconds in which an answer that comes at all has come hundreds of times over


class Place:
    """One server with the clients that a test opened on it."""

    def __init__(self, directory: Path) -> None:
        self.world, self.directory, self.time = World(), directory, 1000.0
        self.server = self._made()
        self.clients: list[TelegramClient] = []

    def _made(self, port: int = 0) -> TelegramServer:
        return TelegramServer(self.world, self.directory, port=port, clock=lambda: self.time)

    async def restart(self) -> None:
        await self.server.stop()
        self.server = self._made(self.server.port)
        await self.server.start()

    async def client(self, session: str | None = None, **options: Any) -> TelegramClient:
        """Return a connected Telethon that neither sleeps through floods nor repeats by itself."""
        kept = StringSession(session)
        if session is None:
            point(kept, self.server.host, self.server.port)
        options = {"flood_sleep_threshold": 0, "request_retries": 0, "raise_last_call_error": True, **options}
        client = TelegramClient(kept, 1, "hash", **options)
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

    def order(self, name: str, value: int | None = None, *, times: int | None = 1, method: str = "sendMessage") -> None:
        self.world.add_rule(Rule("telegram", Fault(name, value), method=method, times=times))

    def texts(self, person: int | str = PERSON) -> list[str]:
        return [message.text for message in self.world.inbox("telegram", str(person))]


@pytest.fixture(scope="session")
def server_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the RSA key once: it takes seconds."""
    directory = tmp_path_factory.mktemp("telegram")
    trust(TelegramServer(World(), directory).public_key_pem)
    return directory / "server-key.pem"


@pytest.fixture
async def place(tmp_path: Path, server_key: Path) -> AsyncIterator[Place]:
    shutil.copy(server_key, tmp_path)
    here = Place(tmp_path)
    await here.server.start()
    yield here
    for client in here.clients:
        await client.disconnect()
    await here.server.stop()


def send(text: str = "hello", *, to: int = PERSON, random_id: int = 1, access_hash: int = 0) -> Any:
    return f.messages.SendMessageRequest(t.InputPeerUser(to, access_hash), text, random_id=random_id)


async def asked(client: TelegramClient, request: Any) -> Any:
    """Ask once, without the two seconds that Telethon sleeps after an error of the server."""
    return await client._sender.send(request)


async def refusal(client: TelegramClient, request: Any) -> tuple[int, str]:
    """Return the code and the text as they came over the wire."""
    seen: list[tuple[int, str]] = []
    handler = client._sender._handlers[0xF35C6D01]

    async def watch(message: Any) -> None:
        if message.obj.error:
            seen.append((message.obj.error.error_code, message.obj.error.error_message))
        await handler(message)

    client._sender._handlers[0xF35C6D01] = watch
    with pytest.raises(errors.RPCError):
        await asked(client, request)
    client._sender._handlers[0xF35C6D01] = handler
    return seen[-1]


async def unanswered(waiting: Awaitable[Any]) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(waiting, NEVER)


async def hear(heard: list[Any], what: Any) -> None:
    heard.append(what)
