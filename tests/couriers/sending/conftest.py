"""Fixtures of the tests of the courier's runtime."""

from collections.abc import AsyncIterator

import pytest

from tests.support.observed_store import ObservedStore
from tests.support.stack import Stack


@pytest.fixture
async def store(stack: Stack) -> AsyncIterator[ObservedStore]:
    """The connection of the courier's process."""
    opened = await ObservedStore.open(stack.server.url)
    yield opened
    await opened.close()
