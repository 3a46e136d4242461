"""The server is killed, loses its functions or is full. Every accepted delivery arrives, once."""

import asyncio
from typing import Any

from core.model.delivery import Accepted
from core.model.states import Status
from tests.support.waiting import until
from tests.system.crash.api_client import delivery
from tests.system.crash.installation import MAX, SMS, TELEGRAM, VK, Installation, person
from tests.system.crash.retrying_callers import RetryingCallers

CHANNELS = (TELEGRAM, VK, MAX, SMS)
"""Whose messages the sandbox counts; that of web push has an inbox of its own."""
GROUP_SIZE = 25
FULL = "STORE_FULL"


async def test_after_a_kill_and_a_restart_all_processes_continue_and_nothing_is_lost_or_duplicated(
    own_installation: Installation,
) -> None:
    installation, count = own_installation, 60
    processes = [installation.start_api(), *(installation.start("courier", channel.name) for channel in CHANNELS)]
    for process in processes:
        await process.ready()
    callers = RetryingCallers(await installation.client_of(processes[0]))
    posting = [asyncio.create_task(callers.post_many(channel, count)) for channel in CHANNELS]
    for received in (count, 2 * count):
        await until(lambda: len(installation.state.inbox()) > received)  # noqa: B023 - awaited at once
        installation.server.kill()
        installation.server.start()
    await asyncio.gather(*posting)
    found = await callers.statuses()
    assert (found["telegram", "sent"], found["vk", "sent"]) == (count, count)
    assert found["sms", "sent"] + found["sms", "unknown"] == count
    assert found["sms", "sent"] <= installation.copies(SMS).total()
    assert [set(installation.copies(channel).values()) for channel in CHANNELS] == [{1}] * len(CHANNELS)
    assert [len(installation.copies(channel)) for channel in (TELEGRAM, VK)] == [count, count]
    assert all(process.is_running for process in processes)
    await installation.audit()


async def test_killed_between_a_send_and_its_settle_the_outcome_is_written_after_the_restart(
    own_installation: Installation,
) -> None:
    installation = own_installation
    links = []
    for channel in CHANNELS:
        link, settings = await installation.link_to(channel)
        await installation.courier(channel, ADA_LEASE="30s", **settings)
        link.block_replies()
        links.append(link)
    accepted = await installation.deliver(person(1, *CHANNELS))
    await until(lambda: len(installation.state.inbox()) == len(CHANNELS))
    installation.server.kill()
    for link in links:
        link.release()
    installation.server.start()
    assert await installation.finished(accepted) == {(channel.name, Status.SENT): 1 for channel in CHANNELS}
    assert len(installation.state.inbox()) == len(CHANNELS)
    await installation.audit()


async def test_killing_pubsub_connections_every_100_ms_loses_no_delivery(
    installation: Installation,
) -> None:
    await installation.courier(SMS, ADA_LEASE="30s")
    killed = await deliver_while_repeating(installation, 400, "CLIENT KILL TYPE pubsub")
    assert sum(killed) > 12


async def test_flushing_the_functions_repeatedly_loses_and_duplicates_nothing(installation: Installation) -> None:
    await installation.courier(SMS, ADA_LEASE="30s")
    flushed = await deliver_while_repeating(installation, 300, "FUNCTION FLUSH")
    assert len(flushed) > 10


async def deliver_while_repeating(installation: Installation, count: int, command: str) -> list[Any]:
    """Makes `count` deliveries while the command runs every 100 ms; each must arrive once. Returns the replies.

    The deliveries come in groups, and the courier sleeps between them.
    """
    replies: list[Any] = []

    async def have_arrived(expected: int) -> bool:
        replies.append(await installation.core.redis.execute_command(command))  # type: ignore[no-untyped-call]
        return installation.copies(SMS).total() >= expected

    accepted: list[Accepted] = []
    for number in range(GROUP_SIZE, count + 1, GROUP_SIZE):
        group = [person(number - n, SMS) for n in range(GROUP_SIZE)]
        accepted += await asyncio.gather(*(installation.deliver(one) for one in group))
        await until(lambda: have_arrived(number), every=0.1)  # noqa: B023 - awaited at once
    for one in accepted:
        assert await installation.finished(one) == {("sms", Status.SENT): 1}
    assert len(installation.copies(SMS)) == count
    assert set(installation.copies(SMS).values()) == {1}
    await installation.audit()
    return replies


async def test_a_full_server_refuses_new_deliveries_and_delivers_the_accepted_ones(
    own_installation: Installation,
) -> None:
    installation = own_installation
    api = await installation.client_of(installation.start_api())
    accepted = [await installation.deliver(person(number, SMS)) for number in range(20)]
    await installation.core.redis.config_set("maxmemory", 1)  # less than the server uses already
    before = installation.server.all_keys()
    for idempotency_key in ("", "once"):
        status, problem = await api.post(delivery({"sms": SMS.address(99)}), idempotency_key)
        assert (status, problem["code"]) == (503, FULL)
    lines = await api.post_bulk([delivery({"sms": SMS.address(99)})] * 2)
    assert [(line["line"], line["status"], line["code"]) for line in lines] == [(1, 503, FULL), (2, 503, FULL)]
    status, result = await api.request("POST", "/v1/cancellations", {"tag": "none"}, idempotency_key="twice")
    assert (status, result["cancelled"]) == (200, 0), "cancelling frees memory, so it is not refused"
    assert installation.server.all_keys() == before
    assert (await api.request("GET", "/v1/deliveries"))[0] == 200
    await installation.courier(SMS)
    for one in accepted:
        assert await installation.finished(one) == {("sms", Status.SENT): 1}
    assert set(installation.copies(SMS).values()) == {1}
    await installation.audit()
    await installation.core.redis.config_set("maxmemory", 0)
    assert (await api.post(delivery({"sms": SMS.address(99)}), "once"))[0] == 202
