"""The MAX sandbox as a provider for the courier's tests; `provider` is the fixture."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.courier import Courier
from couriers import max as max_courier
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.max import MaxServer
from sandbox.state import Fault, Rule, SandboxState
from tests.couriers.contract import Provider, message

TOKEN = "a-secret-token"
MAGIC_ADDRESSES = {fault.name: address for address, fault in MAGIC_RECIPIENTS["max"].items()}
GROUP = "-70001"


class MaxProvider(Provider):
    module = max_courier
    secrets = (TOKEN,)

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.state = SandboxState()
        self.token, self.port, self.timeout = TOKEN, 0, timedelta(seconds=30)

    def settings(self) -> max_courier.Settings:
        return max_courier.Settings(self.token, f"http://127.0.0.1:{self.port}", timeout=self.timeout)

    def address(self, number: int) -> str:
        return str(300_001 + number)

    def received(self, address: str) -> list[str]:
        """A text received in parts has several messages within one attempt: the tests send it alone."""
        texts = [received.text for received in self.state.inbox("max", address)]
        return ["".join(texts)] if any(len(text) > 1000 for text in texts) else texts

    async def start(self) -> None:
        self.server = MaxServer(self.state, port=self.port, token=TOKEN)
        await self.server.start()
        self.port = self.server.port

    async def stop(self) -> None:
        await self.server.stop()

    def inject_fault(
        self, name: str, value: int | None = None, *, address: str = "*", method: str = "sendMessage", times: int = 1
    ) -> None:
        self.state.add_rule(Rule("max", Fault(name, value), address, method, times=times))

    def shown(self, address: str) -> list[dict[str, Any]]:
        """The messages of the chat in their current state."""
        number = int(address)
        people = self.server.people
        shown = people.shown(0, number) if number < 0 else people.shown(number)
        return list(shown["messages"])

    @property
    def requests(self) -> int:
        return self.state.counter("max", "sendMessage")


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[MaxProvider]:
    max_provider = MaxProvider(tmp_path)
    await max_provider.start()
    yield max_provider
    await max_provider.close()
    await max_provider.stop()


async def send_one(courier: Courier, address: str, text: str = "hello", seed: str = "delivery") -> Any:
    return (await courier.attempt([message(address, text, seed)]))[0]
