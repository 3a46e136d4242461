"""A courier is killed, frozen or asked to end at an exact point; another one goes on.

The point is made by wires: what is kept back on the way to the provider or to the server has not happened yet, or
nobody knows of it.
"""

from datetime import UTC, datetime, timedelta

import pytest

from core.model.delivery import Accepted
from core.model.states import Status
from tests.crash.installation import CHANNELS, SMS, TELEGRAM, VK, Channel, Installation, person
from tests.support.waiting import until

each_channel = pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
# Where the provider is no part of the story: one that remembers, one that does not.
one_of_each_kind = pytest.mark.parametrize("channel", [TELEGRAM, SMS], ids=lambda channel: channel.name)

# Messages that one courier process has under way at once (`core.courier.options.Manner`).
SIDE_BY_SIDE = 32
MANY = 2000

# In the parcel's outcomes as they go to the server.
SENT = b'"sent"'


def claiming(channel: Channel) -> bytes:
    """In a claim as it goes to the server: its owner."""
    return f"{channel.name}-".encode()


async def another_ends_it(
    installation: Installation, channel: Channel, accepted: Accepted, copies: int, status: Status
) -> None:
    await installation.courier(channel)
    assert await installation.finished(accepted) == {(channel.name, status): 1}
    assert installation.copies(channel).total() == copies
    await installation.audit()


@one_of_each_kind
@pytest.mark.row("D-19", "K-30")
async def test_killed_before_it_hears_of_its_claim_the_message_goes_out_once(
    installation: Installation, channel: Channel
) -> None:
    wire, settings = await installation.wire_to_server()
    wire.keep_answers(since=claiming(channel))
    accepted = await installation.deliver(person(1, channel))
    courier = installation.start("courier", channel.name, **settings)
    await until(lambda: installation.is_held(channel), within=20)
    courier.kill()
    await another_ends_it(installation, channel, accepted, copies=1, status=Status.SENT)


@each_channel
@pytest.mark.row("D-19", "D-38")
async def test_killed_before_the_send_the_message_goes_out_once_or_is_unknown(
    installation: Installation, channel: Channel
) -> None:
    wire, settings = await installation.wire_to(channel)
    courier = await installation.courier(channel, **settings)
    wire.keep_requests()
    accepted = await installation.deliver(person(1, channel))
    await until(lambda: installation.is_held(channel), within=20)
    await until(lambda: wire.kept, within=20)
    courier.kill()
    wire.cut()
    expected = (1, Status.SENT) if channel.remembers else (0, Status.UNKNOWN)
    await another_ends_it(installation, channel, accepted, *expected)


@each_channel
@pytest.mark.row("D-19", "D-21", "D-38")
async def test_killed_between_the_send_and_its_answer_the_message_is_there_once(
    installation: Installation, channel: Channel
) -> None:
    wire, settings = await installation.wire_to(channel)
    courier = await installation.courier(channel, **settings)
    wire.keep_answers()
    accepted = await installation.deliver(person(1, channel))
    await until(lambda: installation.copies(channel), within=20)
    courier.kill()
    wire.cut()
    await another_ends_it(installation, channel, accepted, 1, Status.SENT if channel.remembers else Status.UNKNOWN)


@each_channel
@pytest.mark.row("D-19", "D-38")
async def test_killed_between_the_answer_and_settle_the_message_is_there_once(
    installation: Installation, channel: Channel
) -> None:
    wire, settings = await installation.wire_to_server()
    wire.keep_requests(since=SENT)
    courier = await installation.courier(channel, **settings)
    accepted = await installation.deliver(person(1, channel))
    await until(lambda: wire.kept, within=20)
    courier.kill()
    wire.cut()
    await another_ends_it(installation, channel, accepted, 1, Status.SENT if channel.remembers else Status.UNKNOWN)


@one_of_each_kind
@pytest.mark.row("D-19")
async def test_killed_after_settle_what_is_written_stays_and_nothing_is_repeated(
    installation: Installation, channel: Channel
) -> None:
    wire, settings = await installation.wire_to_server()
    wire.keep_answers(since=SENT)
    courier = await installation.courier(channel, **settings)
    first = await installation.deliver(person(1, channel))
    assert await installation.finished(first) == {(channel.name, Status.SENT): 1}
    courier.kill()
    second = await installation.deliver(person(2, channel))
    await another_ends_it(installation, channel, second, copies=2, status=Status.SENT)
    assert set(installation.copies(channel).values()) == {1}


class TestFrozen:
    """SIGSTOP past the lease: another courier takes over, then the first one goes on where it was."""

    @each_channel
    @pytest.mark.row("D-19", "K-30")
    async def test_after_its_send_its_late_word_changes_nothing(
        self, installation: Installation, channel: Channel
    ) -> None:
        wire, settings = await installation.wire_to(channel)
        frozen = await installation.courier(channel, **settings)
        wire.keep_answers()
        accepted = await installation.deliver(person(1, channel))
        await until(lambda: installation.copies(channel), within=20)
        frozen.freeze()
        expected = Status.SENT if channel.remembers else Status.UNKNOWN
        await another_ends_it(installation, channel, accepted, 1, expected)
        before = await installation.core.history(accepted.key)
        wire.release()
        frozen.resume()
        frozen.ask_to_end()
        assert await frozen.ended() == 0
        assert await installation.core.history(accepted.key) == before
        assert installation.copies(channel).total() == 1
        await installation.audit()

    @pytest.mark.row("D-19", "K-30")
    async def test_while_its_successor_is_at_work_its_late_word_changes_nothing(
        self, installation: Installation
    ) -> None:
        wire, settings = await installation.wire_to(VK)
        frozen = await installation.courier(VK, **settings)
        wire.keep_answers()
        accepted = await installation.deliver(person(1, VK))
        await until(lambda: installation.copies(VK), within=20)
        frozen.freeze()
        wire_of_successor, settings = await installation.wire_to(VK)
        wire_of_successor.keep_answers(since=b"hello")
        await installation.courier(VK, **settings)
        await until(lambda: wire_of_successor.kept, within=20)
        wire.release()
        frozen.resume()
        frozen.ask_to_end()
        assert await frozen.ended() == 0
        assert await installation.statuses(accepted) == {("vk", Status.QUEUED): 1}
        await installation.audit()
        wire_of_successor.release()
        assert await installation.finished(accepted) == {("vk", Status.SENT): 1}
        assert installation.copies(VK).total() == 1
        await installation.audit()

    @each_channel
    @pytest.mark.row("D-19", "D-38")
    async def test_before_its_send_its_late_send_doubles_nothing(
        self, installation: Installation, channel: Channel
    ) -> None:
        wire, settings = await installation.wire_to(channel)
        frozen = await installation.courier(channel, **settings)
        wire.keep_requests()
        accepted = await installation.deliver(person(1, channel))
        await until(lambda: installation.is_held(channel), within=20)
        await until(lambda: wire.kept, within=20)
        frozen.freeze()
        expected = (1, Status.SENT) if channel.remembers else (0, Status.UNKNOWN)
        await another_ends_it(installation, channel, accepted, *expected)
        before = await installation.core.history(accepted.key)
        wire.release()
        frozen.resume()
        await until(lambda: installation.copies(channel), within=20)
        frozen.ask_to_end()
        assert await frozen.ended() == 0
        assert await installation.core.history(accepted.key) == before
        assert installation.copies(channel).total() == 1
        await installation.audit()


@one_of_each_kind
@pytest.mark.row("D-19", "U-07")
async def test_asked_to_end_it_finishes_the_attempts_in_hand_and_returns_the_rest(
    installation: Installation, channel: Channel
) -> None:
    wire, settings = await installation.wire_to(channel)
    courier = await installation.courier(channel, **settings)
    wire.keep_answers()
    accepted = await installation.deliver(*(person(number, channel) for number in range(100)))
    await until(lambda: installation.copies(channel).total() == SIDE_BY_SIDE, within=20)
    courier.ask_to_end()
    for _ in range(2):  # what it does after it has heard the signal
        await installation.lease_renewed()
    wire.release()
    assert await courier.ended() == 0
    told = await installation.statuses(accepted)
    assert told == {(channel.name, Status.SENT): SIDE_BY_SIDE, (channel.name, Status.QUEUED): 100 - SIDE_BY_SIDE}
    assert installation.copies(channel).total() == SIDE_BY_SIDE
    await installation.audit()
    await installation.courier(channel)
    assert await installation.finished(accepted) == {(channel.name, Status.SENT): 100}
    assert set(installation.copies(channel).values()) == {1}
    history = await installation.core.history(accepted.key)
    assert {one.outcomes[channel.name].attempts for one in history.recipients} == {1}


@pytest.mark.row("D-06", "D-18")
async def test_down_at_the_due_time_it_delivers_when_it_comes_back_unless_it_is_too_late(
    installation: Installation,
) -> None:
    (await installation.courier(SMS)).kill()
    due = datetime.now(UTC) + timedelta(seconds=0.3)
    kept = await installation.deliver(person(1, SMS), deliver_at=due)
    expired = await installation.deliver(person(2, SMS), deliver_at=due, expires_at=due + timedelta(seconds=0.3))
    await until(lambda: datetime.now(UTC) > due + timedelta(seconds=0.6), within=20)
    await installation.courier(SMS)
    assert await installation.finished(kept) == {("sms", Status.SENT): 1}
    assert await installation.finished(expired) == {("sms", Status.EXPIRED): 1}
    assert installation.copies(SMS) == {SMS.address(1): 1}
    await installation.audit()


@pytest.mark.row("D-19", "D-34")
async def test_one_that_crashes_at_every_message_stops_nobody_else(installation: Installation) -> None:
    await installation.courier(TELEGRAM)
    wire, settings = await installation.wire_to(SMS)
    deliveries = []
    for number in range(1, 4):
        crashing = await installation.courier(SMS, **settings)
        wire.keep_answers()
        deliveries.append(await installation.deliver(person(number, SMS, TELEGRAM)))
        await until(lambda: SMS.address(number) in installation.copies(SMS), within=20)  # noqa: B023 - awaited at once
        crashing.kill()
        wire.cut()
        await until(lambda: installation.has_reported(deliveries[-1], TELEGRAM), within=20)
    await installation.courier(SMS)
    for accepted in deliveries:
        assert await installation.finished(accepted) == {("telegram", Status.SENT): 1, ("sms", Status.UNKNOWN): 1}
    assert [set(installation.copies(channel).values()) for channel in (SMS, TELEGRAM)] == [{1}, {1}]
    await installation.audit()


@one_of_each_kind
@pytest.mark.row("D-19", "D-33")
async def test_two_processes_share_a_big_delivery_and_nobody_gets_it_twice(
    installation: Installation, channel: Channel
) -> None:
    couriers = [await installation.courier(channel, ADA_LEASE="30s") for _ in range(2)]
    accepted = await installation.deliver(*(person(number, channel) for number in range(MANY)))
    assert await installation.finished(accepted, within=40) == {(channel.name, Status.SENT): MANY}
    assert set(installation.copies(channel).values()) == {1}
    for courier in couriers:
        courier.ask_to_end()
        assert await courier.ended() == 0
    assert min(courier.parcels() for courier in couriers) > 2
    await installation.audit()


@pytest.mark.row("D-19", "D-33")
async def test_one_of_two_processes_is_killed_over_a_big_delivery_and_everybody_gets_it_once(
    installation: Installation,
) -> None:
    killed, _ = [await installation.courier(TELEGRAM) for _ in range(2)]
    accepted = await installation.deliver(*(person(number, TELEGRAM) for number in range(MANY)))
    await until(lambda: installation.copies(TELEGRAM).total() > MANY // 4, within=20)
    killed.kill()
    assert await installation.finished(accepted, within=40) == {("telegram", Status.SENT): MANY}
    assert set(installation.copies(TELEGRAM).values()) == {1}
    await installation.audit()
