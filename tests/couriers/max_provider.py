"""The MAX sandbox as a provider for the courier's tests; `provider` is the fixture."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from couriers.max import courier as max_courier
from sandbox.max import MaxServer
from tests.couriers.bot_contract import BotProvider
from tests.couriers.contract import running

TOKEN = "a-secret-token"
GROUP = "-70001"


class MaxProvider(BotProvider):
    module = max_courier
    secrets = (TOKEN,)
    channel, server_type, first_address = "max", MaxServer, 300_001

    def shown(self, address: str) -> list[dict[str, Any]]:
        """Return the messages of the chat in their current state."""
        number = int(address)
        people = self.server.people
        shown = people.shown(0, number) if number < 0 else people.shown(number)
        return list(shown["messages"])


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[MaxProvider]:
    async with running(MaxProvider(tmp_path)) as opened:
        yield opened
