"""Real couriers in the real runtime: what crosses the port from either side."""

import gc
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.courier.options import CourierOptions
from core.model.backoff import Backoff
from core.model.delivery import Recipient
from core.model.history import History
from core.model.states import Status
from couriers import vk
from sandbox.magic_recipients import MAGIC
from sandbox.state import World
from sandbox.vk import VkServer
from tests.support.servers import Server
from tests.support.stack import FLOOR, Stack

PATIENT = CourierOptions(floor=FLOOR, backoff=Backoff(timedelta(milliseconds=10), timedelta(milliseconds=50), 4))
MAGIC_OF = {(fault.name, fault.value): address for address, fault in MAGIC["vk"].items()}


@pytest.fixture
async def house(clean_server: Server) -> AsyncIterator[Stack]:
    opened = await Stack.open(clean_server)
    yield opened
    try:
        await opened.end_everything()
    finally:
        await opened.close()


@pytest.fixture
async def world(house: Stack) -> AsyncIterator[World]:
    """VK, played, and its courier in the house."""
    played = World()
    server = VkServer(played)
    await server.start()
    courier = await vk.open(vk.Settings(server.token, server.url), Path())
    await house.courier(courier, PATIENT)  # type: ignore[arg-type]  # the house asks for one of its own, and takes any
    yield played
    await courier.close()
    await server.stop()


def everybody(*addresses: str) -> list[Recipient]:
    return [Recipient(address, contacts={"vk": [address]}) for address in addresses]


def status(history: History, address: str) -> Status:
    return next(each.outcomes["vk"].status for each in history.recipients if each.id == address)


@pytest.mark.row("D-21", "D-20")
@pytest.mark.parametrize("place", [0, 120, 249])
async def test_one_bad_id_anywhere_in_a_large_delivery_costs_nobody_his_message(
    house: Stack, world: World, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    """VK refuses the call of 100 that the id is in; the calls before and behind it are sent.

    The runtime once looked at the first outcome only, and fell over a refusal that came behind a success.
    """
    good = [str(200_001 + number) for number in range(249)]
    bad = MAGIC_OF["peer_poison", None]
    accepted = await house.deliver(*everybody(*good[:place], bad, *good[place:]), channels=("vk",))
    await house.finished(accepted.key)
    told = await house.history(accepted.key, limit=1000)
    assert status(told, bad) == Status.FAILED
    assert {status(told, address) for address in good} == {Status.SENT}
    assert {len(world.inbox("vk", address)) for address in good} == {1}
    gc.collect()  # asyncio tells of a lost exception when its task is forgotten
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.row("D-21", "D-33")
async def test_2501_recipients_are_two_http_calls(house: Stack, world: World) -> None:
    before = world.counted("vk", "http")
    good = [str(200_001 + number) for number in range(2501)]
    accepted = await house.deliver(*everybody(*good), channels=("vk",))
    await house.finished(accepted.key)
    assert world.counted("vk", "http") - before == 2
    assert {len(world.inbox("vk", address)) for address in good} == {1}
