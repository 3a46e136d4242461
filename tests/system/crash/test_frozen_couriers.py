"""A courier is frozen (SIGSTOP) for longer than its lease: another courier takes over, then the first one continues.

Invariant I22: what it knows of its attempts is recorded, also after its lease (S-07).
"""

import pytest

from core.model.states import Status, Verdict
from tests.support.waiting import until
from tests.system.crash.installation import CHANNELS, SMS, VK, Channel, Installation, person

every_channel = pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
MANY = 600


@every_channel
async def test_what_it_has_sent_before_is_recorded(installation: Installation, channel: Channel) -> None:
    link, settings = await installation.link_to(channel)
    frozen = await installation.courier(channel, **settings)
    link.block_replies()
    accepted = await installation.deliver(person(1, channel))
    await until(lambda: installation.copies(channel))
    frozen.freeze()
    taken_over = Status.SENT if channel.deduplicates else Status.UNKNOWN
    await installation.another_courier_finishes(channel, accepted, 1, taken_over)
    link.release()
    frozen.resume()
    frozen.terminate()
    assert await frozen.wait() == 0
    history = await installation.core.history(accepted.key)
    assert history.recipients[0].outcomes[channel.name].status is Status.SENT
    assert history.verdict is Verdict.ALL_REACHED
    assert installation.copies(channel).total() == 1
    await installation.audit()


async def test_what_it_has_sent_is_recorded_while_another_courier_repeats_it(installation: Installation) -> None:
    link, settings = await installation.link_to(VK)
    frozen = await installation.courier(VK, **settings)
    link.block_replies()
    accepted = await installation.deliver(person(1, VK))
    await until(lambda: installation.copies(VK))
    frozen.freeze()
    second_link, settings = await installation.link_to(VK)
    second_link.block_replies(trigger=b"hello")
    second = await installation.courier(VK, **settings)
    await until(lambda: second_link.blocked)
    link.release()
    frozen.resume()
    frozen.terminate()
    assert await frozen.wait() == 0
    assert await installation.finished(accepted) == {("vk", Status.SENT): 1}
    await installation.audit()
    second_link.release()
    second.terminate()
    assert await second.wait() == 0
    assert await installation.finished(accepted) == {("vk", Status.SENT): 1}
    assert installation.copies(VK).total() == 1
    await installation.audit()


@every_channel
async def test_what_it_sends_late_causes_no_duplicate_and_is_recorded(
    installation: Installation, channel: Channel
) -> None:
    link, settings = await installation.link_to(channel)
    frozen = await installation.courier(channel, **settings)
    link.block_requests()
    accepted = await installation.deliver(person(1, channel))
    await until(lambda: installation.is_taken(channel))
    await until(lambda: link.blocked)
    frozen.freeze()
    expected = (1, Status.SENT) if channel.deduplicates else (0, Status.UNKNOWN)
    await installation.another_courier_finishes(channel, accepted, *expected)
    link.release()
    frozen.resume()
    await until(lambda: installation.copies(channel))
    frozen.terminate()
    assert await frozen.wait() == 0
    assert await installation.statuses(accepted) == {(channel.name, Status.SENT): 1}
    assert installation.copies(channel).total() == 1
    await installation.audit()


async def test_of_many_messages_each_that_the_gateway_has_accepted_is_sent(installation: Installation) -> None:
    """Two couriers in turn are frozen again and again while they send; no person is left as unknown, nor gets two."""
    couriers = [await installation.courier(SMS) for _ in range(2)]
    accepted = await installation.deliver(*(person(number, SMS) for number in range(MANY)))
    turn = 0
    while installation.copies(SMS).total() < MANY * 9 // 10 and turn < 6:
        before = installation.copies(SMS).total()
        await until(lambda: installation.copies(SMS).total() > before + 20, within=60)  # noqa: B023 - awaited at once
        frozen = couriers[turn % 2]
        lost = await lost_parcels(installation)
        frozen.freeze()
        await until(lambda: is_taken_over(installation, lost), within=60)  # noqa: B023 - awaited at once
        frozen.resume()
        turn += 1
    await installation.finished(accepted, within=60)
    for courier in couriers:
        courier.terminate()
        assert await courier.wait(within=60) == 0
    history = await installation.core.history(accepted.key, limit=10_000)
    of_address = {SMS.address(int(record.id)): record.outcomes["sms"] for record in history.recipients}
    copies = installation.copies(SMS)
    assert {of_address[address].status for address in copies} == {Status.SENT}
    assert set(copies.values()) == {1}
    assert "outcomes recorded as reports" in "".join(courier.output for courier in couriers)
    assert history.counts["reached"] == len(copies)
    await installation.audit()


async def lost_parcels(installation: Installation) -> int:
    return int(await installation.core.redis.hget("queue:{0}:counters", "sms:lost") or 0)


async def is_taken_over(installation: Installation, lost: int) -> bool:
    """Whether the other courier has taken parcels over, or has finished them all because the frozen one had none."""
    return await lost_parcels(installation) > lost or installation.copies(SMS).total() >= MANY
