"""A house on a real server, audited at the end of each test."""

from collections.abc import AsyncIterator

import pytest

from tests.core.house import House
from tests.servers import Server


@pytest.fixture
async def house(clean_server: Server) -> AsyncIterator[House]:
    """Audited when the test is over, and again when what it left undone was ended; then the law of keys is asked."""
    opened = await House.open(clean_server)
    yield opened
    try:
        await opened.end_everything()
    finally:
        await opened.close()
