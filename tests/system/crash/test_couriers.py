"""A courier is killed or terminated at an exact point, and another courier continues.

The tests choose the point with a CuttableLink to the provider or to the server: a blocked request has not happened yet;
after a blocked reply it has happened, and the courier does not know.
"""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from core.model.states import Status
from sandbox.sms.providers import PASSWORD
from tests.support.stack import TENANT
from tests.support.waiting import until
from tests.system.crash.installation import CHANNELS, SMS, TELEGRAM, Channel, Installation, person

every_channel = pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
# Where the provider does not matter: one recognizes repeated requests, the other does not.
one_channel_of_each_kind = pytest.mark.parametrize("channel", [TELEGRAM, SMS], ids=lambda channel: channel.name)

# Messages that one courier process attempts at once (`couriers.sending.services.CourierOptions`).
CONCURRENT_ATTEMPTS = 32
MANY = 2000

# In every request that writes the outcomes of a parcel.
SENT = b'"sent"'


def claim_of(channel: Channel) -> bytes:
    """Bytes in every claim of a courier: its owner."""
    return f"{channel.name}-".encode()


@one_channel_of_each_kind
async def test_killed_before_the_reply_to_its_claim_the_message_is_sent_once(
    installation: Installation, channel: Channel
) -> None:
    link, settings = await installation.link_to_server()
    link.block_replies(trigger=claim_of(channel))
    accepted = await installation.deliver(person(1, channel))
    courier = installation.start("courier", channel.name, **settings)
    await until(lambda: installation.is_taken(channel))
    courier.kill()
    await installation.another_courier_finishes(channel, accepted, copies=1, status=Status.SENT)


@every_channel
async def test_killed_before_the_send_the_message_is_sent_once_or_is_unknown(
    installation: Installation, channel: Channel
) -> None:
    link, settings = await installation.link_to(channel)
    courier = await installation.courier(channel, **settings)
    link.block_requests()
    accepted = await installation.deliver(person(1, channel))
    await until(lambda: installation.is_taken(channel))
    await until(lambda: link.blocked)
    courier.kill()
    link.cut()
    expected = (1, Status.SENT) if channel.deduplicates else (0, Status.UNKNOWN)
    await installation.another_courier_finishes(channel, accepted, *expected)


@every_channel
async def test_killed_between_the_send_and_its_response_the_message_is_received_once(
    installation: Installation, channel: Channel
) -> None:
    link, settings = await installation.link_to(channel)
    courier = await installation.courier(channel, **settings)
    link.block_replies()
    accepted = await installation.deliver(person(1, channel))
    await until(lambda: installation.copies(channel))
    courier.kill()
    link.cut()
    await installation.another_courier_finishes(
        channel, accepted, 1, Status.SENT if channel.deduplicates else Status.UNKNOWN
    )


async def test_killed_between_the_send_and_its_response_an_sms_of_a_profile_is_received_once_and_unknown(
    installation: Installation,
) -> None:
    link = await installation.link(installation.sandbox.sms_providers.port)
    profile = {"ADA_SMS_PROFILE": "sms.ru", "ADA_SMS_PASSWORD": PASSWORD}
    courier = await installation.courier(SMS, **profile, ADA_SMS_URL=f"http://127.0.0.1:{link.port}")
    link.block_replies()
    accepted = await installation.deliver(person(1, SMS))
    await until(lambda: installation.copies(SMS))
    courier.kill()
    link.cut()
    await installation.courier(SMS, **profile, ADA_SMS_URL=installation.sandbox.sms_providers.url)
    assert await installation.finished(accepted) == {("sms", Status.UNKNOWN): 1}
    assert installation.copies(SMS).total() == 1
    await installation.audit()


@every_channel
async def test_killed_between_the_response_and_settle_the_message_is_received_once(
    installation: Installation, channel: Channel
) -> None:
    link, settings = await installation.link_to_server()
    link.block_requests(trigger=SENT)
    courier = await installation.courier(channel, **settings)
    accepted = await installation.deliver(person(1, channel))
    await until(lambda: link.blocked)
    courier.kill()
    link.cut()
    await installation.another_courier_finishes(
        channel, accepted, 1, Status.SENT if channel.deduplicates else Status.UNKNOWN
    )


@one_channel_of_each_kind
async def test_killed_after_settle_the_outcome_stays_and_nothing_is_repeated(
    installation: Installation, channel: Channel
) -> None:
    link, settings = await installation.link_to_server()
    link.block_replies(trigger=SENT)
    courier = await installation.courier(channel, **settings)
    first = await installation.deliver(person(1, channel))
    assert await installation.finished(first) == {(channel.name, Status.SENT): 1}
    courier.kill()
    second = await installation.deliver(person(2, channel))
    await installation.another_courier_finishes(channel, second, copies=2, status=Status.SENT)
    assert set(installation.copies(channel).values()) == {1}


@one_channel_of_each_kind
async def test_a_terminated_courier_finishes_the_attempts_under_way_and_releases_the_rest(
    installation: Installation, channel: Channel
) -> None:
    link, settings = await installation.link_to(channel)
    courier = await installation.courier(channel, **settings)
    link.block_replies()
    accepted = await installation.deliver(*(person(number, channel) for number in range(100)))
    await until(lambda: installation.copies(channel).total() == CONCURRENT_ATTEMPTS)
    courier.terminate()
    for _ in range(2):  # the courier has received the signal before the second heartbeat
        await installation.lease_renewed()
    link.release()
    assert await courier.wait() == 0
    statuses = await installation.statuses(accepted)
    assert statuses == {
        (channel.name, Status.SENT): CONCURRENT_ATTEMPTS,
        (channel.name, Status.QUEUED): 100 - CONCURRENT_ATTEMPTS,
    }
    assert installation.copies(channel).total() == CONCURRENT_ATTEMPTS
    await installation.audit()
    await installation.courier(channel)
    assert await installation.finished(accepted) == {(channel.name, Status.SENT): 100}
    assert set(installation.copies(channel).values()) == {1}
    history = await installation.core.history(accepted.key)
    assert {recipient.outcomes[channel.name].attempts for recipient in history.recipients} == {1}


async def test_a_courier_that_was_down_at_the_due_time_delivers_later_unless_the_delivery_has_expired(
    installation: Installation,
) -> None:
    (await installation.courier(SMS)).kill()
    due = datetime.now(UTC) + timedelta(seconds=0.3)
    later = await installation.deliver(person(1, SMS), deliver_at=due)
    expired = await installation.deliver(person(2, SMS), deliver_at=due, expires_at=due + timedelta(seconds=0.3))
    await until(lambda: datetime.now(UTC) > due + timedelta(seconds=0.6))
    await installation.courier(SMS)
    assert await installation.finished(later) == {("sms", Status.SENT): 1}
    assert await installation.finished(expired) == {("sms", Status.EXPIRED): 1}
    assert installation.copies(SMS) == {SMS.address(1): 1}
    await installation.audit()


async def test_a_courier_that_crashes_at_every_message_does_not_stop_other_channels(installation: Installation) -> None:
    await installation.courier(TELEGRAM)
    link, settings = await installation.link_to(SMS)
    deliveries = []
    for number in range(1, 4):
        crashing = await installation.courier(SMS, **settings)
        link.block_replies()
        deliveries.append(await installation.deliver(person(number, SMS, TELEGRAM)))
        await until(lambda: SMS.address(number) in installation.copies(SMS))  # noqa: B023 - awaited at once
        crashing.kill()
        link.cut()
        await until(lambda: installation.has_reported(deliveries[-1], TELEGRAM))
    await installation.courier(SMS)
    for accepted in deliveries:
        assert await installation.finished(accepted) == {("telegram", Status.SENT): 1, ("sms", Status.UNKNOWN): 1}
    assert [set(installation.copies(channel).values()) for channel in (SMS, TELEGRAM)] == [{1}, {1}]
    await installation.audit()


@one_channel_of_each_kind
async def test_two_processes_share_a_large_delivery_and_no_recipient_gets_it_twice(
    installation: Installation, channel: Channel
) -> None:
    couriers = [await installation.courier(channel, ADA_LEASE="30s", ADA_LOG_LEVEL="debug") for _ in range(2)]
    accepted = await installation.deliver(*(person(number, channel) for number in range(MANY)))
    assert await installation.finished(accepted, within=40) == {(channel.name, Status.SENT): MANY}
    assert set(installation.copies(channel).values()) == {1}
    for courier in couriers:
        courier.terminate()
        assert await courier.wait() == 0
    assert min(courier.settled_parcels() for courier in couriers) > 2
    await installation.audit()


async def test_one_of_two_processes_is_killed_during_a_large_delivery_and_every_recipient_gets_it_once(
    installation: Installation,
) -> None:
    killed, _ = [await installation.courier(TELEGRAM) for _ in range(2)]
    accepted = await installation.deliver(*(person(number, TELEGRAM) for number in range(MANY)))
    await until(lambda: installation.copies(TELEGRAM).total() > MANY // 4)
    killed.kill()
    assert await installation.finished(accepted, within=40) == {("telegram", Status.SENT): MANY}
    assert set(installation.copies(TELEGRAM).values()) == {1}
    await installation.audit()


@pytest.mark.parametrize("end", [Status.CANCELLED, Status.EXPIRED])
async def test_killed_in_its_first_claim_who_waits_for_its_hours_was_not_sent_to(
    installation: Installation, end: Status
) -> None:
    link, settings = await installation.link_to(TELEGRAM)
    courier = await installation.courier(TELEGRAM, **settings)
    link.block_replies()
    core = installation.core
    begin = core.now() + timedelta(hours=3)
    hours = f"{begin:%H:%M}-{begin + timedelta(hours=1):%H:%M} UTC"
    later = msgspec.structs.replace(person(2, TELEGRAM), hours=hours)
    accepted = await installation.deliver(person(1, TELEGRAM), later, expires_at=core.now() + timedelta(hours=1))
    await until(lambda: installation.copies(TELEGRAM))
    courier.kill()
    link.cut()
    core.advance_clock(timedelta(hours=1 if end is Status.EXPIRED else 0.5))
    await core.tick()
    if end is Status.CANCELLED:
        await core.deliveries.cancel(accepted.key, TENANT)
    expected = {("telegram", Status.UNKNOWN): 1, ("telegram", end): 1}
    assert await installation.finished(accepted) == expected
    await installation.audit()
