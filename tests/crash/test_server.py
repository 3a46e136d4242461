"""The server is killed, flushed of its scripts or full; what was accepted arrives, once."""

import asyncio
from typing import Any

import pytest

from core.orders import Accepted
from core.words import Status
from tests.crash.api import delivery
from tests.crash.flow import Flow
from tests.crash.house import CHANNELS, SMS, TELEGRAM, VK, House, person
from tests.waiting import until

GROUP = 25
FULL = "STORE_FULL"


@pytest.mark.row("D-18", "D-19", "D-39", "K-31")
async def test_killed_in_the_middle_and_started_again_everybody_goes_on_and_nothing_is_lost_or_doubled(
    own_house: House,
) -> None:
    house, count = own_house, 60
    programs = [house.start_api(), *(house.start("courier", channel.name) for channel in CHANNELS)]
    for program in programs:
        await program.ready()
    flow = Flow(await house.client_of(programs[0]))
    callers = [asyncio.create_task(flow.begin(channel, count)) for channel in CHANNELS]
    for received in (count, 2 * count):
        await until(lambda: len(house.world.inbox()) > received, within=20)  # noqa: B023 - awaited at once
        house.server.kill()
        house.server.start()
    await asyncio.gather(*callers)
    found = await flow.statuses()
    assert (found["telegram", "sent"], found["vk", "sent"]) == (count, count)
    assert found["sms", "sent"] + found["sms", "unknown"] == count
    assert found["sms", "sent"] <= house.copies(SMS).total()
    assert [set(house.copies(channel).values()) for channel in CHANNELS] == [{1}] * len(CHANNELS)
    assert [len(house.copies(channel)) for channel in (TELEGRAM, VK)] == [count, count]
    assert all(program.is_up for program in programs)
    await house.audit()


@pytest.mark.row("D-19", "K-31")
async def test_killed_between_a_send_and_its_settle_what_was_sent_is_written_when_it_is_back(own_house: House) -> None:
    house = own_house
    wires = []
    for channel in CHANNELS:
        wire, settings = await house.wire_to(channel)
        await house.courier(channel, ADA_LEASE="30s", **settings)
        wire.keep_answers()
        wires.append(wire)
    accepted = await house.deliver(person(1, *CHANNELS))
    await until(lambda: len(house.world.inbox()) == len(CHANNELS), within=20)
    house.server.kill()
    for wire in wires:
        wire.release()
    house.server.start()
    assert await house.finished(accepted) == {(channel.name, Status.SENT): 1 for channel in CHANNELS}
    assert len(house.world.inbox()) == len(CHANNELS)
    await house.audit()


@pytest.mark.row("D-19", "D-06")
async def test_pubsub_connections_killed_every_100_ms_lose_no_delivery_and_make_none_wait_for_the_floor(
    house: House,
) -> None:
    await house.courier(SMS, ADA_LEASE="30s")
    killed = await undisturbed(house, 1000, "CLIENT KILL TYPE pubsub")
    assert sum(killed) > 30


@pytest.mark.row("D-19")
async def test_scripts_flushed_again_and_again_nothing_is_lost_or_doubled(house: House) -> None:
    await house.courier(SMS, ADA_LEASE="30s")
    flushed = await undisturbed(house, 300, "SCRIPT FLUSH")
    assert len(flushed) > 10


async def undisturbed(house: House, count: int, command: str) -> list[Any]:
    """So many deliveries arrive once each while the command is given every 100 ms; what it answered.

    They come in groups, and the courier sleeps between them. It would look again by itself after its floor, 3 s.
    """
    answers: list[Any] = []

    async def is_there(so_many: int) -> bool:
        answers.append(await house.core.redis.execute_command(command))  # type: ignore[no-untyped-call]
        return house.copies(SMS).total() >= so_many

    accepted: list[Accepted] = []
    for number in range(GROUP, count + 1, GROUP):
        group = [person(number - n, SMS) for n in range(GROUP)]
        accepted += await asyncio.gather(*(house.deliver(one) for one in group))
        await until(lambda: is_there(number), within=2.5, every=0.1)  # noqa: B023 - awaited at once
    for one in accepted:
        assert await house.finished(one) == {("sms", Status.SENT): 1}
    assert len(house.copies(SMS)) == count
    assert set(house.copies(SMS).values()) == {1}
    await house.audit()
    return answers


@pytest.mark.row("D-27")
async def test_a_full_server_refuses_new_deliveries_clearly_and_drains_the_accepted_ones(own_house: House) -> None:
    house = own_house
    api = await house.client_of(house.start_api())
    accepted = [await house.deliver(person(number, SMS)) for number in range(20)]
    await house.core.redis.config_set("maxmemory", 1)  # what is used already is more than that
    before = house.server.all_keys()
    for repeat in ("", "once"):
        status, told = await api.post(delivery({"sms": SMS.address(99)}), repeat)
        assert (status, told["code"]) == (503, FULL)
    lines = await api.post_lines([delivery({"sms": SMS.address(99)})] * 2)
    assert [(line["line"], line["status"], line["code"]) for line in lines] == [(1, 503, FULL), (2, 503, FULL)]
    status, told = await api.ask("POST", "/v1/cancellations", {"tag": "none"}, repeat="twice")
    assert (status, told["cancelled"]) == (200, 0), "cancelling makes room, so it is not refused"
    assert house.server.all_keys() == before
    assert (await api.ask("GET", "/v1/deliveries"))[0] == 200
    await house.courier(SMS)
    for one in accepted:
        assert await house.finished(one) == {("sms", Status.SENT): 1}
    assert set(house.copies(SMS).values()) == {1}
    await house.audit()
    await house.core.redis.config_set("maxmemory", 0)
    assert (await api.post(delivery({"sms": SMS.address(99)}), "once"))[0] == 202
