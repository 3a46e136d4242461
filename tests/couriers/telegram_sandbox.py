"""Telegram, played, for the courier's tests: `house` is the fixture."""

import shutil
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from telethon import TelegramClient
from telethon.sessions import StringSession

from core.courier.interface import Courier
from couriers import telegram
from sandbox.magic_recipients import MAGIC
from sandbox.state import Fault, Rule, World
from sandbox.telegram import TelegramServer, point, trust
from tests.couriers.contract import House, message

BOT = "4242:sandbox"
MAGIC_OF = {fault.name: address for address, fault in MAGIC["telegram"].items()}
SHORT = timedelta(seconds=1)  # for what is never answered


class TelegramHouse(House):
    module = telegram
    secrets = (BOT, "hash")

    def __init__(self, directory: Path, key: Path) -> None:
        super().__init__(directory / "couriers")
        self.world, self.time = World(), 1000.0
        self._kept = directory / "telegram"
        self._kept.mkdir()
        shutil.copy(key, self._kept)
        self.account: dict[str, Any] = {"bot_token": BOT}
        self.timeout = timedelta(seconds=15)
        self.port = 0

    def settings(self) -> telegram.Settings:
        server = f"127.0.0.1:{self.port}"
        return telegram.Settings(
            1, "hash", **self.account, server=server, server_key=self.server.public_key_pem, timeout=self.timeout
        )

    def address(self, number: int) -> str:
        return str(100_001 + number)

    def received(self, address: str) -> list[str]:
        return [received.text for received in self.world.inbox("telegram", address)]

    async def start(self) -> None:
        self.server = TelegramServer(self.world, self._kept, port=self.port, clock=lambda: self.time)
        await self.server.start()
        self.port = self.server.port

    async def stop(self) -> None:
        await self.server.stop()

    async def forget_everybody(self) -> None:
        """The server loses its sessions, and keeps its key."""
        await self.stop()
        (self._kept / "sessions.jsonl").unlink()
        await self.start()

    def order(self, name: str, value: int | None = None, *, address: str = "*", method: str = "sendMessage") -> None:
        self.world.add_rule(Rule("telegram", Fault(name, value), address=address, method=method, times=1))

    async def sign_in(self, phone: str = "+79990000077") -> str:
        """A session string of a user's account, as a person gets it."""
        session = StringSession()
        point(session, "127.0.0.1", self.port)
        trust(self.server.public_key_pem)
        client = TelegramClient(session, 1, "hash")
        await client.connect()
        await client.send_code_request(phone)
        await client.sign_in(phone, "22222")
        await client.disconnect()
        return str(session.save())

    async def become_user(self) -> None:
        self.account = {"session": await self.sign_in()}


@pytest.fixture
async def house(tmp_path: Path, telegram_key: Path) -> AsyncIterator[TelegramHouse]:
    played = TelegramHouse(tmp_path, telegram_key)
    await played.start()
    yield played
    await played.close()
    await played.stop()


async def one(courier: Courier, address: str, text: str = "hello") -> Any:
    """The outcome of one message; the same text is a repeat of the same message."""
    return (await courier.attempt([message(address, text, seed=text, recipient=address)]))[0]
