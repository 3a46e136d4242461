"""The server is killed, flushed of its scripts or full; what was accepted arrives, once."""

import asyncio
from typing import Any

import pytest

from core.model.delivery import Accepted
from core.model.states import Status
from tests.crash.api import delivery
from tests.crash.installation import CHANNELS, SMS, TELEGRAM, VK, Installation, person
from tests.crash.repeating_callers import Flow
from tests.support.waiting import until

GROUP = 25
FULL = "STORE_FULL"


@pytest.mark.row("D-18", "D-19", "D-39", "K-31")
async def test_killed_in_the_middle_and_started_again_everybody_goes_on_and_nothing_is_lost_or_doubled(
    own_house: Installation,
) -> None:
    installation, count = own_house, 60
    programs = [installation.start_api(), *(installation.start("courier", channel.name) for channel in CHANNELS)]
    for program in programs:
        await program.ready()
    flow = Flow(await installation.client_of(programs[0]))
    callers = [asyncio.create_task(flow.begin(channel, count)) for channel in CHANNELS]
    for received in (count, 2 * count):
        await until(lambda: len(installation.world.inbox()) > received, within=20)  # noqa: B023 - awaited at once
        installation.server.kill()
        installation.server.start()
    await asyncio.gather(*callers)
    found = await flow.statuses()
    assert (found["telegram", "sent"], found["vk", "sent"]) == (count, count)
    assert found["sms", "sent"] + found["sms", "unknown"] == count
    assert found["sms", "sent"] <= installation.copies(SMS).total()
    assert [set(installation.copies(channel).values()) for channel in CHANNELS] == [{1}] * len(CHANNELS)
    assert [len(installation.copies(channel)) for channel in (TELEGRAM, VK)] == [count, count]
    assert all(program.is_up for program in programs)
    await installation.audit()


@pytest.mark.row("D-19", "K-31")
async def test_killed_between_a_send_and_its_settle_what_was_sent_is_written_when_it_is_back(
    own_house: Installation,
) -> None:
    installation = own_house
    wires = []
    for channel in CHANNELS:
        wire, settings = await installation.wire_to(channel)
        await installation.courier(channel, ADA_LEASE="30s", **settings)
        wire.keep_answers()
        wires.append(wire)
    accepted = await installation.deliver(person(1, *CHANNELS))
    await until(lambda: len(installation.world.inbox()) == len(CHANNELS), within=20)
    installation.server.kill()
    for wire in wires:
        wire.release()
    installation.server.start()
    assert await installation.finished(accepted) == {(channel.name, Status.SENT): 1 for channel in CHANNELS}
    assert len(installation.world.inbox()) == len(CHANNELS)
    await installation.audit()


@pytest.mark.row("D-19", "D-06")
async def test_pubsub_connections_killed_every_100_ms_lose_no_delivery_and_make_none_wait_for_the_floor(
    installation: Installation,
) -> None:
    await installation.courier(SMS, ADA_LEASE="30s")
    killed = await undisturbed(installation, 1000, "CLIENT KILL TYPE pubsub")
    assert sum(killed) > 30


@pytest.mark.row("D-19")
async def test_scripts_flushed_again_and_again_nothing_is_lost_or_doubled(installation: Installation) -> None:
    await installation.courier(SMS, ADA_LEASE="30s")
    flushed = await undisturbed(installation, 300, "SCRIPT FLUSH")
    assert len(flushed) > 10


async def undisturbed(installation: Installation, count: int, command: str) -> list[Any]:
    """So many deliveries arrive once each while the command is given every 100 ms; what it answered.

    They come in groups, and the courier sleeps between them. It would look again by itself after its floor, 3 s.
    """
    answers: list[Any] = []

    async def is_there(so_many: int) -> bool:
        answers.append(await installation.core.redis.execute_command(command))  # type: ignore[no-untyped-call]
        return installation.copies(SMS).total() >= so_many

    accepted: list[Accepted] = []
    for number in range(GROUP, count + 1, GROUP):
        group = [person(number - n, SMS) for n in range(GROUP)]
        accepted += await asyncio.gather(*(installation.deliver(one) for one in group))
        await until(lambda: is_there(number), within=2.5, every=0.1)  # noqa: B023 - awaited at once
    for one in accepted:
        assert await installation.finished(one) == {("sms", Status.SENT): 1}
    assert len(installation.copies(SMS)) == count
    assert set(installation.copies(SMS).values()) == {1}
    await installation.audit()
    return answers


@pytest.mark.row("D-27")
async def test_a_full_server_refuses_new_deliveries_clearly_and_drains_the_accepted_ones(
    own_house: Installation,
) -> None:
    installation = own_house
    api = await installation.client_of(installation.start_api())
    accepted = [await installation.deliver(person(number, SMS)) for number in range(20)]
    await installation.core.redis.config_set("maxmemory", 1)  # what is used already is more than that
    before = installation.server.all_keys()
    for repeat in ("", "once"):
        status, told = await api.post(delivery({"sms": SMS.address(99)}), repeat)
        assert (status, told["code"]) == (503, FULL)
    lines = await api.post_lines([delivery({"sms": SMS.address(99)})] * 2)
    assert [(line["line"], line["status"], line["code"]) for line in lines] == [(1, 503, FULL), (2, 503, FULL)]
    status, told = await api.ask("POST", "/v1/cancellations", {"tag": "none"}, repeat="twice")
    assert (status, told["cancelled"]) == (200, 0), "cancelling makes room, so it is not refused"
    assert installation.server.all_keys() == before
    assert (await api.ask("GET", "/v1/deliveries"))[0] == 200
    await installation.courier(SMS)
    for one in accepted:
        assert await installation.finished(one) == {("sms", Status.SENT): 1}
    assert set(installation.copies(SMS).values()) == {1}
    await installation.audit()
    await installation.core.redis.config_set("maxmemory", 0)
    assert (await api.post(delivery({"sms": SMS.address(99)}), "once"))[0] == 202
