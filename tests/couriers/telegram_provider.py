"""The Telegram sandbox as a provider for the courier's tests; `provider` is the fixture."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from telethon import TelegramClient
from telethon.sessions import StringSession

from cli.processes.embedded_valkey import free_port
from core.redis.keys import KEYS
from core.redis.store import Store
from couriers.sending import Courier
from couriers.telegram import sign_in as telegram
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault, Rule, SandboxState
from sandbox.telegram import TelegramServer, set_server, trust_server_key
from tests.couriers.contract import Provider, message, running
from tests.support.waiting import until

BOT = "4242:sandbox"
MAGIC_ADDRESSES = {fault.name: address for address, fault in MAGIC_RECIPIENTS["telegram"].items()}
SHORT_TIMEOUT = timedelta(seconds=3)  # for requests that are never answered


class TelegramProvider(Provider):
    module = telegram
    secrets = (BOT, "hash")

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "couriers")
        self.state, self.time = SandboxState(), 1000.0
        self.clock: Callable[[], float] = lambda: self.time
        self._server_directory = directory / "telegram"
        self._server_directory.mkdir()
        self.account: dict[str, Any] = {"bot_token": BOT}
        self.timeout = timedelta(seconds=15)
        self.port = free_port()

    def settings(self) -> telegram.Settings:
        server = f"127.0.0.1:{self.port}"
        return telegram.Settings(
            1, "hash", **self.account, server=server, server_key=self.server.public_key_pem, timeout=self.timeout
        )

    def address(self, number: int) -> str:
        return str(100_001 + number)

    def received(self, address: str) -> list[str]:
        return [received.text for received in self.state.inbox("telegram", address)]

    async def start(self) -> None:
        self.server = TelegramServer(self.state, self._server_directory, port=self.port, clock=self.clock)
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()

    async def lose_sessions(self) -> None:
        """Restart the server without its sessions."""
        await self.stop()
        (self._server_directory / "sessions.jsonl").unlink()
        await self.start()

    def inject_fault(
        self, name: str, value: int | None = None, *, address: str = "*", method: str = "sendMessage"
    ) -> None:
        self.state.add_rule(Rule("telegram", Fault(name, value), address=address, method=method, times=1))

    async def sign_in(self, phone: str = "+79990000077") -> str:
        """Sign in as a user with plain Telethon and return the session string."""
        return await signed_in(self.server, phone)

    async def use_user_account(self) -> None:
        self.account = {"session": await self.sign_in()}


async def signed_in(server: TelegramServer, phone: str, api_id: int = 1, api_hash: str = "hash") -> str:
    """Sign in as a user with plain Telethon and return the session string."""
    session = StringSession()
    set_server(session, "127.0.0.1", server.port)
    trust_server_key(server.public_key_pem)
    client = TelegramClient(session, api_id, api_hash)
    await client.connect()
    await client.send_code_request(phone)
    await client.sign_in(phone, "22222")
    await client.disconnect()
    return str(session.save())


def position_key(store: Store) -> str:
    """Return the key under which it is stored how far what people write to the bot over MTProto was read."""
    account = f"telegram.{BOT.partition(':')[0]}"
    return KEYS["polled"].at(store.shard_of(account), account)


async def reads(store: Store) -> None:
    """Wait until a process reads what people write to the bot: at its first start, what was written before is not."""
    await until(lambda: store.command("GET", position_key(store)))


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[TelegramProvider]:
    async with running(TelegramProvider(tmp_path)) as opened:
        yield opened


async def send_one(courier: Courier, address: str, text: str = "hello") -> Any:
    """Send one message and return its outcome; the same text again is a repeat of the same message."""
    return (await courier.attempt([message(address, text, seed=text, recipient=address)]))[0]
