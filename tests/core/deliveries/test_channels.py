"""The register of channels, as several processes see it."""

import asyncio

import pytest

from core.deliveries.channels import ChannelFacts, Channels
from tests.support.servers import Server
from tests.support.stack import Stack
from tests.support.waiting import stays, until


async def test_a_channel_that_another_process_registers_is_known_soon(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.deliveries.channels._CACHED_SECONDS", 0.05)
    here = Channels(stack.store, ())
    assert "pigeon" not in (await here.current()).names
    await Channels(stack.store, ()).register("pigeon", ChannelFacts(7))

    async def is_known() -> bool:
        return "pigeon" in (await here.current()).names

    await until(is_known)
    assert (await here.current()).parcel_sizes["pigeon"] == 7


async def test_the_register_is_read_once_for_many_deliveries(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.deliveries.channels._CACHED_SECONDS", 60)
    here = Channels(stack.store, ())
    first = await here.current()
    await Channels(stack.store, ()).register("pigeon", ChannelFacts(7))
    assert await here.current() is first
    assert "pigeon" in (await here.read()).names


async def test_the_register_that_is_known_serves_while_its_server_does_not_answer(own_server: Server) -> None:
    stack = await Stack.open(own_server)
    here = Channels(stack.store, ())
    first = await here.current()
    own_server.pause()

    async def is_served() -> bool:
        return await asyncio.wait_for(here.current(), 5) is first

    await stays(is_served, during=1.5)
    own_server.resume()
    await Channels(stack.store, ()).register("pigeon", ChannelFacts(7))

    async def is_current() -> bool:
        return "pigeon" in (await here.current()).names

    await until(is_current)
    await stack.close()
