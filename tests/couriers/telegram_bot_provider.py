"""The Bot API sandbox as a provider for the courier's tests; `provider` is the fixture."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from couriers.telegram_bot import courier as telegram_bot
from sandbox.bot_api import BotApiServer
from tests.couriers.bot_contract import BotProvider
from tests.couriers.contract import running

TOKEN = "4343:a-secret-token"
GROUP = "-1000000000123"


class BotApiProvider(BotProvider):
    module = telegram_bot
    secrets = (TOKEN,)
    channel, server_type, first_address = "telegram-bot", BotApiServer, 100_001


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[BotApiProvider]:
    async with running(BotApiProvider(tmp_path)) as opened:
        yield opened
