"""The Telegram courier over real MTProto: outcomes of messages."""

import asyncio
from datetime import timedelta

import pytest
from telethon.sessions import StringSession
from telethon.tl.functions.messages import SendMessageRequest
from telethon.tl.types import InputPeerSelf

from couriers.sending import Deferred, Halted, Reason, Rejected, Scope, Sent, Unknown
from couriers.telegram.connection import AccountClient, TelegramConnection
from sandbox.state import Fault, Rule
from tests.couriers.contract import UNUSUAL_TEXTS, OutageContract, Provider, message, send
from tests.couriers.relay import Relay
from tests.couriers.telegram_provider import MAGIC_ADDRESSES, SHORT_TIMEOUT, TelegramProvider, provider, send_one
from tests.support.waiting import until

__all__ = ["provider"]


class TestTelegram(OutageContract):
    @pytest.mark.parametrize("text", UNUSUAL_TEXTS)
    async def test_unusual_text_is_received_unchanged(self, provider: Provider, text: str) -> None:
        await super().test_unusual_text_is_received_unchanged(provider, text)

    async def test_the_longest_text_is_received_unchanged(self, provider: Provider) -> None:
        await super().test_the_longest_text_is_received_unchanged(provider)

    async def test_an_outage_uses_up_no_attempts_and_the_courier_recovers(self, provider: Provider) -> None:
        await super().test_an_outage_uses_up_no_attempts_and_the_courier_recovers(provider)


# magic recipients

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
STORED_FAULTS = ["stored_then_error", "stored_then_silence", "disconnect_after"]
NOT_STORED_FAULTS = ["server_error", "timeout", "disconnect_before"]


@pytest.mark.parametrize(("fault", "reason"), REJECTED.items())
async def test_a_rejected_recipient_does_not_affect_the_others(
    provider: TelegramProvider, fault: str, reason: Reason
) -> None:
    courier = await provider.open()
    addresses = [provider.address(number) for number in range(10)]
    outcomes = await send(courier, [message(each, recipient=each) for each in [MAGIC_ADDRESSES[fault], *addresses]])
    assert isinstance(outcomes[0], Rejected)
    assert outcomes[0].reason is reason
    assert all(isinstance(outcome, Sent) for outcome in outcomes[1:])
    assert provider.received(MAGIC_ADDRESSES[fault]) == []


@pytest.mark.parametrize("fault", HALTED)
async def test_an_unusable_account_halts(provider: TelegramProvider, fault: str) -> None:
    assert isinstance(await send_one(await provider.open(), MAGIC_ADDRESSES[fault]), Halted)


async def test_a_flood_wait_throttles_the_method_until_it_ends(provider: TelegramProvider) -> None:
    courier = await provider.open()
    provider.inject_fault("flood_wait", 60)
    first = await send_one(courier, provider.address(1))
    assert first == Deferred(Reason.THROTTLED, timedelta(seconds=60), Scope.METHOD, "FLOOD_WAIT_n")
    provider.time += 30
    second = await send_one(courier, provider.address(2))
    assert isinstance(second, Deferred)
    assert second.after == timedelta(seconds=30)
    provider.time += 31
    assert isinstance(await send_one(courier, provider.address(1)), Sent)


async def test_slow_mode_throttles_only_its_chat(provider: TelegramProvider) -> None:
    courier = await provider.open()
    provider.inject_fault("slow_mode", 60)
    slow = await send_one(courier, provider.address(1))
    assert slow == Deferred(Reason.THROTTLED, timedelta(seconds=60), Scope.CHAT, "SLOWMODE_WAIT_n")
    assert isinstance(await send_one(courier, provider.address(2)), Sent)


async def create_key(provider: TelegramProvider) -> None:
    """Sign in once with a long timeout: under load the exchange of keys takes longer than the short one."""
    await (await provider.open()).close()


@pytest.mark.parametrize("fault", STORED_FAULTS + NOT_STORED_FAULTS)
async def test_a_lost_answer_is_unknown_and_after_a_repeat_there_is_one_copy(
    provider: TelegramProvider, fault: str
) -> None:
    if fault in ("stored_then_silence", "timeout"):
        await create_key(provider)
        provider.timeout = SHORT_TIMEOUT
    courier = await provider.open()
    provider.inject_fault(fault)
    assert isinstance(await send_one(courier, provider.address(1)), Unknown)
    assert provider.received(provider.address(1)) == (["hello"] if fault in STORED_FAULTS else [])
    repeated = await send_one(courier, provider.address(1))
    assert isinstance(repeated, Sent)
    assert repeated.reference == provider.state.inbox("telegram", provider.address(1))[0].reference
    assert provider.received(provider.address(1)) == ["hello"]


async def test_a_request_is_repeated_while_telegram_still_processes_the_first(provider: TelegramProvider) -> None:
    courier = await provider.open()
    provider.inject_fault("random_id_duplicate", 2)
    outcome = await send_one(courier, provider.address(1))
    assert outcome == Sent(provider.state.inbox("telegram", provider.address(1))[0].reference)


async def test_a_message_that_stays_a_duplicate_is_sent_without_a_reference(provider: TelegramProvider) -> None:
    courier = await provider.open()
    provider.inject_fault("random_id_duplicate", 100)
    assert await send_one(courier, provider.address(1)) == Sent("")
    assert provider.received(provider.address(1)) == ["hello"]


async def test_a_broken_connection_under_load_loses_and_doubles_nothing(provider: TelegramProvider) -> None:
    courier = await provider.open()
    addresses = [provider.address(number) for number in range(32)]
    provider.inject_fault("disconnect_after", address=addresses[7])
    outcomes = await asyncio.gather(*(send_one(courier, each) for each in addresses))
    assert isinstance(outcomes[7], Unknown)
    assert {type(outcome) for outcome in outcomes} <= {Sent, Unknown, Deferred}
    outcomes = await asyncio.gather(*(send_one(courier, each) for each in addresses))
    assert all(isinstance(outcome, Sent) for outcome in outcomes)
    assert [provider.received(each) for each in addresses] == [["hello"]] * 32


async def test_a_message_that_breaks_each_connection_is_not_repeated_by_telethon(provider: TelegramProvider) -> None:
    """Telethon's own reconnection would repeat it without end, and break the connection for all messages each time."""
    courier = await provider.open()
    rule = provider.state.add_rule(Rule("telegram", Fault("disconnect_before"), address="100500", method="sendMessage"))
    for _ in range(3):
        assert isinstance(await send_one(courier, "100500"), Unknown)
        assert isinstance(await send_one(courier, provider.address(1)), Sent)
    assert provider.state.counter("telegram", "sendMessage") == 6
    assert rule in provider.state.rules()


async def test_a_request_waits_while_the_connection_is_made_so_that_it_cannot_break_it(
    provider: TelegramProvider,
) -> None:
    session = StringSession(await provider.sign_in())
    client = AccountClient(session, 1, "hash", is_bot=False, auto_reconnect=False)
    connection = TelegramConnection(client, provider.timeout)
    provider.inject_fault("disconnect_before")
    connecting = asyncio.create_task(connection.connect())
    await until(client.is_connected, every=0)  # to the server, which has not answered yet
    with pytest.raises(ConnectionError):
        await connection.request(SendMessageRequest(InputPeerSelf(), "hello", random_id=1))
    await connecting
    await connection.close()


async def test_a_dead_connection_is_replaced(provider: TelegramProvider) -> None:
    await create_key(provider)
    relay = Relay(provider.port)
    await relay.start()
    provider.port, provider.timeout = relay.port, SHORT_TIMEOUT
    try:
        courier = await provider.open()
        connections = relay.connections
        relay.freeze()
        assert isinstance(await send_one(courier, provider.address(1)), Unknown)
        assert isinstance(await send_one(courier, provider.address(1)), Sent)
        assert relay.connections == connections + 1
        await courier.close()
    finally:
        await relay.stop()


# long texts


async def test_a_long_text_is_sent_in_parts_and_the_reference_names_them(provider: TelegramProvider) -> None:
    courier = await provider.open()
    text = "😀" * 4096
    outcome = await send_one(courier, provider.address(1), text)
    arrived = provider.state.inbox("telegram", provider.address(1))
    assert "".join(part.text for part in arrived) == text
    assert outcome == Sent(",".join(part.reference for part in arrived))
    assert len({part.random_id for part in arrived}) == 2


@pytest.mark.parametrize("fault", ["flood_wait", "server_error", "disconnect_after"])
async def test_a_repeat_after_half_of_a_text_completes_it(provider: TelegramProvider, fault: str) -> None:
    courier = await provider.open()
    text = "я " * 2000 + "а " * 2000
    await send_one(courier, provider.address(9), "connected")
    arrives = asyncio.create_task(provider.state.wait_for_message())
    sending = asyncio.create_task(send_one(courier, provider.address(1), text))
    await arrives
    provider.inject_fault(fault, 4 if fault == "flood_wait" else None)
    assert not isinstance(await sending, Sent)
    provider.time += 5
    assert isinstance(await send_one(courier, provider.address(1), text), Sent)
    assert "".join(provider.received(provider.address(1))) == text
