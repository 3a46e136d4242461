"""A stack that a test damages; it is not audited at its end."""

from collections.abc import AsyncIterator

import pytest

from tests.core.audit.damages import Scene, scene
from tests.support.servers import Server
from tests.support.stack import Stack


@pytest.fixture
async def damaged(server: Server) -> AsyncIterator[Scene]:
    """A stack with tasks in every state and deliveries in every state."""
    opened = await Stack.open(server)
    yield await scene(opened)
    await opened.close()
