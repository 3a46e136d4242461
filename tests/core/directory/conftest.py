"""A directory on a real server; after each test the audit must find nothing."""

import pytest

from core.directory import Directory
from core.redis.store import Store
from tests.support.servers import several_shards
from tests.support.small_pages import small_pages

__all__ = ["several_shards", "small_pages"]

TENANT = "university"
OTHER = "college"


@pytest.fixture
def store(audited_store: Store) -> Store:
    return audited_store


@pytest.fixture
def directory(store: Store) -> Directory:
    return Directory(store)
