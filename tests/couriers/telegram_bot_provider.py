"""The Bot API sandbox as a provider for the courier's tests; `provider` is the fixture."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.courier import Courier
from couriers import telegram_bot
from sandbox.bot_api import BotApiServer
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault, Rule, SandboxState
from tests.couriers.contract import Provider, message

TOKEN = "4343:a-secret-token"
MAGIC_ADDRESSES = {fault.name: address for address, fault in MAGIC_RECIPIENTS["telegram-bot"].items()}
GROUP = "-1000000000123"


class BotApiProvider(Provider):
    module = telegram_bot
    secrets = (TOKEN,)

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.state = SandboxState()
        self.token, self.port, self.timeout = TOKEN, 0, timedelta(seconds=30)

    def settings(self) -> telegram_bot.Settings:
        return telegram_bot.Settings(self.token, f"http://127.0.0.1:{self.port}", self.timeout)

    def address(self, number: int) -> str:
        return str(100_001 + number)

    def received(self, address: str) -> list[str]:
        """A text received in parts has several messages within one attempt: the tests send it alone."""
        texts = [received.text for received in self.state.inbox("telegram-bot", address)]
        return ["".join(texts)] if any(len(text) > 1000 for text in texts) else texts

    async def start(self) -> None:
        self.server = BotApiServer(self.state, port=self.port, token=TOKEN)
        await self.server.start()
        self.port = self.server.port

    async def stop(self) -> None:
        await self.server.stop()

    def inject_fault(self, name: str, value: int | None = None, *, address: str = "*") -> None:
        self.state.add_rule(Rule("telegram-bot", Fault(name, value), address, "sendMessage", times=1))

    @property
    def requests(self) -> int:
        return self.state.counter("telegram-bot", "sendMessage")


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[BotApiProvider]:
    bot_provider = BotApiProvider(tmp_path)
    await bot_provider.start()
    yield bot_provider
    await bot_provider.close()
    await bot_provider.stop()


async def send_one(courier: Courier, address: str, text: str = "hello") -> Any:
    return (await courier.attempt([message(address, text)]))[0]
