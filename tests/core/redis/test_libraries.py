"""The libraries of several versions on one server: the newest is named, unused ones are removed."""

import time
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from core.queue import connect
from core.redis import library
from core.redis.server_checks import UNUSED, register
from core.redis.store import Store
from tests.support.servers import Server, on_both_servers

OLD = """#!lua name=ada_0123456789
redis.register_function('ada_0123456789_put', function() return 1 end)
"""
FOREIGN = """#!lua name=billing
redis.register_function('billing_put', function() return 1 end)
"""


@pytest.fixture
async def store(server: Server, client: Redis) -> AsyncIterator[Store]:
    for text in (OLD, FOREIGN):
        await client.function_load(text, replace=True)
    opened = await Store.open(server.url)
    yield opened
    await opened.close()
    await client.function_flush()


def ms_ago(time_ago: timedelta) -> float:
    return time.time() * 1000 - time_ago / timedelta(milliseconds=1)


async def loaded(client: Redis) -> set[str]:
    found = await client.function_list()
    return {words[words.index("library_name") + 1] for words in found}


@on_both_servers
async def test_a_program_in_another_language_finds_the_functions_by_the_key_library(
    store: Store, client: Redis
) -> None:
    await register(store)
    prefix = await client.get("library")
    assert prefix == library.current().name
    task = ("id", "tenant", "", "5", "", "", "", "", "", "", "", "body")
    put = ("FCALL", f"{prefix}_put", 1, "queue:{0}:counters", "{0}", 0, "client", 1, 1, "t", *task)
    assert await client.execute_command(*put) == ["ready"]  # type: ignore[no-untyped-call]


@on_both_servers
async def test_a_library_that_was_not_started_for_a_month_is_removed(store: Store, client: Redis) -> None:
    await client.zadd("libraries", {"ada_0123456789": ms_ago(UNUSED + timedelta(minutes=1)), "ada_gone": 1})
    await register(store)
    assert await loaded(client) == {library.current().name, "billing"}
    assert await client.zrange("libraries", 0, -1) == [library.current().name]


async def test_a_library_that_was_started_within_a_month_stays(store: Store, client: Redis) -> None:
    await client.zadd("libraries", {"ada_0123456789": ms_ago(UNUSED - timedelta(minutes=1))})
    await register(store)
    assert await loaded(client) == {library.current().name, "ada_0123456789", "billing"}


async def test_a_library_of_which_no_start_is_known_stays_for_a_month_from_now(store: Store, client: Redis) -> None:
    """A process that still runs loaded it again after it was removed."""
    await register(store)
    assert await client.zscore("libraries", "ada_0123456789") == pytest.approx(ms_ago(timedelta()), abs=10_000)
    assert "ada_0123456789" in await loaded(client)


async def test_every_start_counts(store: Store, client: Redis) -> None:
    name = library.current().name
    await client.zadd("libraries", {name: 1})
    await register(store)
    assert await client.zscore("libraries", name) == pytest.approx(ms_ago(timedelta()), abs=10_000)
    assert name in await loaded(client)


async def test_a_full_server_keeps_what_it_has(store: Store, client: Redis) -> None:
    await client.config_set("maxmemory", "1")
    await register(store)
    await client.config_set("maxmemory", "0")
    assert await client.get("library") is None
    assert await loaded(client) == {library.current().name, "ada_0123456789", "billing"}


async def test_a_client_of_the_queue_registers_its_version(server: Server, client: Redis) -> None:
    async with connect(server.url):
        assert await client.get("library") == library.current().name


async def test_a_key_of_another_type_does_not_prevent_a_start(store: Store, client: Redis) -> None:
    await client.set("libraries", "of another program")
    await register(store)
    assert await client.get("library") == library.current().name
