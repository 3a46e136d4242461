"""A directory on a real server; after each test the audit must find nothing."""

from collections.abc import AsyncIterator

import pytest

from core.directory import Directory
from core.redis.store import Store
from tests.support.audited import violations_in
from tests.support.servers import Server

TENANT = "university"
OTHER = "college"


@pytest.fixture
async def store(clean_server: Server) -> AsyncIterator[Store]:
    opened = await Store.open(clean_server.url)
    yield opened
    assert await violations_in(opened) == []
    await opened.close()


@pytest.fixture
def directory(store: Store) -> Directory:
    return Directory(store)
