"""The Telegram courier over real MTProto: what becomes of messages."""

import asyncio
from datetime import timedelta

import pytest

from core.courier.interface import Deferred, Halted, Rejected, Scope, Sent, Unknown
from core.model.states import Reason
from sandbox.state import Fault, Rule
from tests.couriers.contract import OutageContract, message, send
from tests.couriers.silent_link import Relay
from tests.couriers.telegram_sandbox import MAGIC_OF, SHORT, TelegramHouse, house, one

__all__ = ["house"]


class TestTelegram(OutageContract):
    pass


# what the magic recipients meet with, each among people who are well

REJECTED = {
    "privacy": Reason.PRIVACY,
    "premium_required": Reason.PRIVACY,
    "payment_required": Reason.PRIVACY,
    "blocked": Reason.BLOCKED,
    "deactivated": Reason.RECIPIENT_UNREACHABLE,
    "peer_invalid": Reason.RECIPIENT_UNREACHABLE,
    "write_forbidden": Reason.RECIPIENT_UNREACHABLE,
}
HALTED = ["peer_flood", "frozen", "auth_key_unregistered", "session_revoked", "deactivated_ban", "auth_key_duplicated"]
STORED = ["stored_then_error", "stored_then_silence", "disconnect_after"]
LOST = ["server_error", "timeout", "disconnect_before"]


@pytest.mark.row("D-20")
@pytest.mark.parametrize(("fault", "reason"), REJECTED.items())
async def test_who_cannot_be_written_to_holds_up_nobody(house: TelegramHouse, fault: str, reason: Reason) -> None:
    courier = await house.open()
    people = [house.address(number) for number in range(10)]
    outcomes = await send(courier, [message(each, recipient=each) for each in [MAGIC_OF[fault], *people]])
    assert isinstance(outcomes[0], Rejected)
    assert outcomes[0].reason is reason
    assert all(isinstance(outcome, Sent) for outcome in outcomes[1:])
    assert house.received(MAGIC_OF[fault]) == []


@pytest.mark.row("D-20")
@pytest.mark.parametrize("fault", HALTED)
async def test_what_ends_the_account_halts(house: TelegramHouse, fault: str) -> None:
    assert isinstance(await one(await house.open(), MAGIC_OF[fault]), Halted)


@pytest.mark.row("D-20", "D-22")
async def test_a_flood_wait_holds_up_the_method_until_it_ends(house: TelegramHouse) -> None:
    courier = await house.open()
    house.order("flood_wait", 60)
    first = await one(courier, house.address(1))
    assert first == Deferred(Reason.THROTTLED, timedelta(seconds=60), Scope.METHOD, "FLOOD_WAIT_n")
    house.time += 30
    second = await one(courier, house.address(2))
    assert isinstance(second, Deferred)
    assert second.after == timedelta(seconds=30)
    house.time += 31
    assert isinstance(await one(courier, house.address(1)), Sent)


@pytest.mark.row("D-20", "D-23")
async def test_slow_mode_holds_up_its_chat_alone(house: TelegramHouse) -> None:
    courier = await house.open()
    house.order("slow_mode", 60)
    slow = await one(courier, house.address(1))
    assert slow == Deferred(Reason.THROTTLED, timedelta(seconds=60), Scope.CHAT, "SLOWMODE_WAIT_n")
    assert isinstance(await one(courier, house.address(2)), Sent)


@pytest.mark.row("D-20", "D-38")
@pytest.mark.parametrize("fault", STORED + LOST)
async def test_what_may_have_arrived_is_unknown_and_a_repeat_makes_it_one_copy(
    house: TelegramHouse, fault: str
) -> None:
    house.timeout = SHORT if fault in ("stored_then_silence", "timeout") else house.timeout
    courier = await house.open()
    house.order(fault)
    assert isinstance(await one(courier, house.address(1)), Unknown)
    assert house.received(house.address(1)) == (["hello"] if fault in STORED else [])
    repeated = await one(courier, house.address(1))
    assert isinstance(repeated, Sent)
    assert repeated.reference == house.world.inbox("telegram", house.address(1))[0].reference
    assert house.received(house.address(1)) == ["hello"]


async def test_a_first_call_that_still_runs_is_asked_for_again(house: TelegramHouse) -> None:
    courier = await house.open()
    house.order("random_id_duplicate", 2)
    outcome = await one(courier, house.address(1))
    assert outcome == Sent(house.world.inbox("telegram", house.address(1))[0].reference)


async def test_a_message_that_telegram_keeps_calling_a_duplicate_is_sent_without_a_number(house: TelegramHouse) -> None:
    courier = await house.open()
    house.order("random_id_duplicate", 100)
    assert await one(courier, house.address(1)) == Sent("")
    assert house.received(house.address(1)) == ["hello"]


@pytest.mark.row("D-20")
async def test_when_the_connection_breaks_under_many_nobody_is_lost_and_nobody_gets_two(house: TelegramHouse) -> None:
    courier = await house.open()
    people = [house.address(number) for number in range(32)]
    house.order("disconnect_after", address=people[7])
    outcomes = await asyncio.gather(*(one(courier, each) for each in people))
    assert isinstance(outcomes[7], Unknown)
    assert {type(outcome) for outcome in outcomes} <= {Sent, Unknown, Deferred}
    outcomes = await asyncio.gather(*(one(courier, each) for each in people))
    assert all(isinstance(outcome, Sent) for outcome in outcomes)
    assert [house.received(each) for each in people] == [["hello"]] * 32


async def test_a_message_that_breaks_every_connection_is_not_repeated_by_the_library(house: TelegramHouse) -> None:
    """Telethon's own reconnection would repeat it for ever, and cut everybody else off each time."""
    courier = await house.open()
    rule = house.world.add_rule(Rule("telegram", Fault("disconnect_before"), address="100500", method="sendMessage"))
    for _ in range(3):
        assert isinstance(await one(courier, "100500"), Unknown)
        assert isinstance(await one(courier, house.address(1)), Sent)
    assert house.world.counted("telegram", "sendMessage") == 6
    assert rule in house.world.rules()


async def test_a_line_that_is_cut_without_a_word_is_replaced(house: TelegramHouse) -> None:
    relay = Relay(house.port)
    await relay.start()
    house.port, house.timeout = relay.port, SHORT
    courier = await house.open()
    relay.freeze()
    assert isinstance(await one(courier, house.address(1)), Unknown)
    assert isinstance(await one(courier, house.address(1)), Sent)
    assert relay.connections == 2
    await courier.close()
    await relay.stop()


# long texts


@pytest.mark.row("D-25", "D-20")
async def test_a_long_text_arrives_in_parts_with_their_numbers(house: TelegramHouse) -> None:
    courier = await house.open()
    text = "😀" * 4096
    outcome = await one(courier, house.address(1), text)
    arrived = house.world.inbox("telegram", house.address(1))
    assert "".join(part.text for part in arrived) == text
    assert outcome == Sent(",".join(part.reference for part in arrived))
    assert len({part.random_id for part in arrived}) == 2


@pytest.mark.parametrize("fault", ["flood_wait", "server_error", "disconnect_after"])
async def test_a_repeat_after_half_of_a_text_sends_the_other_half(house: TelegramHouse, fault: str) -> None:
    courier = await house.open()
    text = "я " * 2000 + "а " * 2000
    await one(courier, house.address(9), "connected")
    arrives = asyncio.create_task(house.world.news())
    sending = asyncio.create_task(one(courier, house.address(1), text))
    await arrives
    house.order(fault, 4 if fault == "flood_wait" else None)
    assert not isinstance(await sending, Sent)
    house.time += 5
    assert isinstance(await one(courier, house.address(1), text), Sent)
    assert "".join(house.received(house.address(1))) == text
