"""A directory on a real server; after each test the audit must find nothing."""

from collections.abc import AsyncIterator

import pytest

from core.directory import Directory
from core.queue.queue import Queue
from core.queue.task import TaskFilter
from core.redis.store import Store
from core.updates.events import ANSWERS_TUBE
from tests.support.servers import several_shards
from tests.support.small_pages import small_pages

__all__ = ["several_shards", "small_pages"]

TENANT = "university"
OTHER = "college"


@pytest.fixture
async def store(audited_store: Store) -> AsyncIterator[Store]:
    """A store. Nobody works on what follows from a change of contacts: it is cancelled after the test."""
    yield audited_store
    for tenant in (TENANT, OTHER):
        await Queue(audited_store).cancel_by(TaskFilter(tenant=tenant, tube=ANSWERS_TUBE))


@pytest.fixture
def directory(store: Store) -> Directory:
    return Directory(store)
