"""A running bot with its school."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sandbox.bot_api_clients import BotApi, bot_api
from tests.scenarios.teacher.chat import School, open_school
from tests.support.stack import Stack

__all__ = ["bot_api"]


@pytest.fixture
async def idle_school(stack: Stack, bot_api: BotApi, tmp_path: Path) -> School:
    """The school without a running bot."""
    return await open_school(stack, bot_api, tmp_path)


@pytest.fixture
async def school(idle_school: School) -> AsyncIterator[School]:
    async with idle_school.running():
        yield idle_school
