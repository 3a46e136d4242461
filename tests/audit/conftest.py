"""The audited house of core, and one that a test damages: its end is not audited."""

from collections.abc import AsyncIterator

import pytest

from tests.audit.damages import Scene, scene
from tests.core.conftest import house
from tests.core.house import House
from tests.servers import Server

__all__ = ["house"]


@pytest.fixture
async def damaged(server: Server) -> AsyncIterator[Scene]:
    """A house with tasks in every state and deliveries in every state."""
    opened = await House.open(server)
    yield await scene(opened)
    await opened.close()
