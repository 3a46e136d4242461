"""A courier is killed, frozen or asked to end at an exact point; another one goes on.

The point is made by wires: what is kept back on the way to the provider or to the server has not happened yet, or
nobody knows of it.
"""

import pytest

from core.orders import Accepted
from core.words import Status
from tests.crash.house import CHANNELS, Channel, House, person
from tests.waiting import until

each_channel = pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)

# In the parcel's outcomes as they go to the server.
SENT = b'"sent"'


def claiming(channel: Channel) -> bytes:
    """In a claim as it goes to the server: its owner."""
    return f"{channel.name}-".encode()


async def another_ends_it(house: House, channel: Channel, accepted: Accepted, copies: int, status: Status) -> None:
    await house.courier(channel)
    assert await house.finished(accepted) == {(channel.name, status): 1}
    assert house.copies(channel).total() == copies
    await house.audit()


@each_channel
@pytest.mark.row("D-19", "K-30")
async def test_killed_before_it_hears_of_its_claim_the_message_goes_out_once(house: House, channel: Channel) -> None:
    wire, settings = await house.wire_to_server()
    wire.keep_answers(since=claiming(channel))
    accepted = await house.deliver(person(1, channel))
    courier = house.start("courier", channel.name, **settings)
    await until(lambda: house.is_held(channel), within=20)
    courier.kill()
    await another_ends_it(house, channel, accepted, copies=1, status=Status.SENT)


@each_channel
@pytest.mark.row("D-19", "D-38")
async def test_killed_before_the_send_the_message_goes_out_once_or_is_unknown(house: House, channel: Channel) -> None:
    wire, settings = await house.wire_to(channel)
    courier = await house.courier(channel, **settings)
    wire.keep_requests()
    accepted = await house.deliver(person(1, channel))
    await until(lambda: house.is_held(channel))
    await until(lambda: wire.kept)
    courier.kill()
    wire.cut()
    expected = (1, Status.SENT) if channel.remembers else (0, Status.UNKNOWN)
    await another_ends_it(house, channel, accepted, *expected)


@each_channel
@pytest.mark.row("D-19", "D-21", "D-38")
async def test_killed_between_the_send_and_its_answer_the_message_is_there_once(house: House, channel: Channel) -> None:
    wire, settings = await house.wire_to(channel)
    courier = await house.courier(channel, **settings)
    wire.keep_answers()
    accepted = await house.deliver(person(1, channel))
    await until(lambda: house.copies(channel))
    courier.kill()
    wire.cut()
    await another_ends_it(house, channel, accepted, 1, Status.SENT if channel.remembers else Status.UNKNOWN)


@each_channel
@pytest.mark.row("D-19", "D-38")
async def test_killed_between_the_answer_and_settle_the_message_is_there_once(house: House, channel: Channel) -> None:
    wire, settings = await house.wire_to_server()
    wire.keep_requests(since=SENT)
    courier = await house.courier(channel, **settings)
    accepted = await house.deliver(person(1, channel))
    await until(lambda: wire.kept)
    courier.kill()
    wire.cut()
    await another_ends_it(house, channel, accepted, 1, Status.SENT if channel.remembers else Status.UNKNOWN)


@each_channel
@pytest.mark.row("D-19")
async def test_killed_after_settle_what_is_written_stays_and_nothing_is_repeated(
    house: House, channel: Channel
) -> None:
    wire, settings = await house.wire_to_server()
    wire.keep_answers(since=SENT)
    courier = await house.courier(channel, **settings)
    first = await house.deliver(person(1, channel))
    assert await house.finished(first) == {(channel.name, Status.SENT): 1}
    courier.kill()
    second = await house.deliver(person(2, channel))
    await another_ends_it(house, channel, second, copies=2, status=Status.SENT)
    assert set(house.copies(channel).values()) == {1}
