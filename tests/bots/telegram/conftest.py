"""A running bot with its school."""

from collections.abc import AsyncIterator

import pytest

from tests.bots.telegram.chat import School, open_school
from tests.sandbox.bot_api_clients import BotApi, bot_api
from tests.support.stack import Stack

__all__ = ["bot_api"]


@pytest.fixture
async def idle_school(stack: Stack, bot_api: BotApi) -> School:
    """The school without a running bot."""
    return await open_school(stack, bot_api)


@pytest.fixture
async def school(idle_school: School) -> AsyncIterator[School]:
    async with idle_school.running():
        yield idle_school
