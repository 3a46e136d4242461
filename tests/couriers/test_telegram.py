"""The Telegram courier over real MTProto."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from telethon import TelegramClient
from telethon.sessions import StringSession

from core.errors import SetupError
from core.port import Courier, Deferred, Halted, Rejected, Scope, Sent, Unknown
from core.words import Reason
from couriers import telegram
from sandbox.magic import MAGIC
from sandbox.telegram import TelegramServer, point, trust
from sandbox.world import Fault, Rule, World
from tests.couriers.contract import House, OutageContract, message, send
from tests.couriers.relay import Relay
from tests.waiting import until

BOT = "4242:sandbox"
MAGIC_OF = {fault.name: address for address, fault in MAGIC["telegram"].items()}
SHORT = timedelta(seconds=1)  # for what is never answered


class TelegramHouse(House):
    module = telegram
    secrets = (BOT, "hash")

    def __init__(self, directory: Path, key: Path) -> None:
        super().__init__(directory / "couriers")
        self.world, self.time = World(), 1000.0
        self._kept = directory / "telegram"
        self._kept.mkdir()
        shutil.copy(key, self._kept)
        self.account: dict[str, Any] = {"bot_token": BOT}
        self.timeout = timedelta(seconds=15)
        self.port = 0

    def settings(self) -> telegram.Settings:
        server = f"127.0.0.1:{self.port}"
        return telegram.Settings(
            1, "hash", **self.account, server=server, server_key=self.server.public_key_pem, timeout=self.timeout
        )

    def address(self, number: int) -> str:
        return str(100_001 + number)

    def received(self, address: str) -> list[str]:
        return [received.text for received in self.world.inbox("telegram", address)]

    async def start(self) -> None:
        self.server = TelegramServer(self.world, self._kept, port=self.port, clock=lambda: self.time)
        await self.server.start()
        self.port = self.server.port

    async def stop(self) -> None:
        await self.server.stop()

    async def forget_everybody(self) -> None:
        """The server loses its sessions, and keeps its key."""
        await self.stop()
        (self._kept / "sessions.jsonl").unlink()
        await self.start()

    def order(self, name: str, value: int | None = None, *, address: str = "*", method: str = "sendMessage") -> None:
        self.world.add_rule(Rule("telegram", Fault(name, value), address=address, method=method, times=1))

    async def sign_in(self, phone: str = "+79990000077") -> str:
        """A session string of a user's account, as a person gets it."""
        session = StringSession()
        point(session, "127.0.0.1", self.port)
        trust(self.server.public_key_pem)
        client = TelegramClient(session, 1, "hash")
        await client.connect()
        await client.send_code_request(phone)
        await client.sign_in(phone, "22222")
        await client.disconnect()
        return str(session.save())

    async def become_user(self) -> None:
        self.account = {"session": await self.sign_in()}


@pytest.fixture
async def house(tmp_path: Path, telegram_key: Path) -> AsyncIterator[TelegramHouse]:
    played = TelegramHouse(tmp_path, telegram_key)
    await played.start()
    yield played
    await played.close()
    await played.stop()


async def one(courier: Courier, address: str, text: str = "hello") -> Any:
    """The outcome of one message; the same text is a repeat of the same message."""
    return (await courier.attempt([message(address, text, seed=text, recipient=address)]))[0]


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


# addresses


async def test_a_bot_needs_one_request_for_each_person(house: TelegramHouse) -> None:
    courier = await house.open()
    before = house.world.counters()["telegram"]
    for number in range(5):
        await one(courier, house.address(number))
    assert house.world.counters()["telegram"] == before | {"sendMessage": 5}


async def test_a_name_is_asked_for_once(house: TelegramHouse) -> None:
    courier = await house.open()
    for text in ("one", "two"):
        assert isinstance(await one(courier, "@Some_Student", text), Sent)
    assert house.world.counted("telegram", "resolveUsername") == 1
    received = house.world.inbox("telegram")
    assert [each.text for each in received] == ["one", "two"]
    assert len({each.address for each in received}) == 1


@pytest.mark.parametrize("address", ["", "somebody", "@", "12a", "+", "+7 999", "٣٤٥", "1" * 30])
async def test_what_is_no_address_is_refused(house: TelegramHouse, address: str) -> None:
    await house.become_user()
    outcome = await one(await house.open(), address)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.RECIPIENT_UNREACHABLE


async def test_an_old_access_hash_is_asked_for_once_more(house: TelegramHouse) -> None:
    """The session of one server knows a hash that the next one does not accept."""
    await house.become_user()
    courier = await house.open()
    assert isinstance(await one(courier, "+79990000078"), Sent)
    phones = next(house.directory.glob("*.phones"))
    await courier.close()
    answer = json.loads(phones.read_text())
    answer["owner"]["access_hash"] += 1
    phones.write_text(json.dumps(answer))
    assert isinstance(await one(await house.open(), "+79990000078", "again"), Sent)
    assert [each.text for each in house.world.inbox("telegram")] == ["hello", "again"]


async def test_a_user_finds_people_by_phone_and_asks_once_even_after_a_restart(house: TelegramHouse) -> None:
    await house.become_user()
    courier = await house.open()
    assert isinstance(await one(courier, "+79990000078"), Sent)
    await courier.close()
    assert isinstance(await one(await house.open(), "+79990000078", "again"), Sent)
    assert house.world.counted("telegram", "importContacts") == 1


async def test_a_number_that_is_nobodys_is_not_asked_for_again_the_same_day(house: TelegramHouse) -> None:
    await house.become_user()
    courier = await house.open()
    house.order("not_registered", method="importContacts")
    for _ in range(2):
        assert isinstance(await one(courier, "+79990000078"), Rejected)
    assert house.world.counted("telegram", "importContacts") == 1


@pytest.mark.row("D-23")
@pytest.mark.parametrize("fault", ["retry_contacts", "flood_wait"])
async def test_a_search_that_must_wait_holds_up_its_recipient_alone(house: TelegramHouse, fault: str) -> None:
    await house.become_user()
    courier = await house.open()
    assert isinstance(await one(courier, "+79990000077"), Sent)
    house.order(fault, method="importContacts")
    waiting = await one(courier, "+79990000078")
    assert isinstance(waiting, Deferred)
    assert (waiting.reason, waiting.scope) == (Reason.THROTTLED, Scope.RECIPIENT)
    assert waiting.after
    assert isinstance(await one(courier, "+79990000077", "still served"), Sent)


async def test_a_bot_cannot_search_by_phone(house: TelegramHouse) -> None:
    assert isinstance(await one(await house.open(), "+79990000078"), Rejected)
    assert house.world.counted("telegram", "importContacts") == 0


# sessions


@pytest.mark.row("D-19")
async def test_two_processes_of_a_bot_have_a_session_each_and_keep_it(house: TelegramHouse) -> None:
    couriers = [await house.open(), await house.open()]
    for courier in couriers:
        assert isinstance(await one(courier, house.address(1), "from both"), Sent)
        await courier.close()
    again = await house.open()
    assert isinstance(await one(again, house.address(2)), Sent)
    assert house.world.counted("telegram", "importBotAuthorization") == 2
    assert len(list(house.directory.glob("*.session"))) == 2
    assert house.received(house.address(1)) == ["from both"]


async def test_a_users_session_serves_one_process(house: TelegramHouse) -> None:
    await house.become_user()
    courier = await house.open()
    with pytest.raises(SetupError, match="one connection"):
        await house.open()
    await courier.close()
    assert isinstance(await one(await house.open(), house.address(1)), Rejected | Sent)


async def test_nobody_else_can_read_a_session(house: TelegramHouse) -> None:
    await house.open()
    assert {path.stat().st_mode & 0o077 for path in house.directory.glob("*.session")} == {0}
    assert house.directory.stat().st_mode & 0o077 == 0


async def test_a_bot_whose_key_is_forgotten_signs_in_anew(house: TelegramHouse) -> None:
    await (await house.open()).close()
    await house.forget_everybody()
    assert isinstance(await one(await house.open(), house.address(1)), Sent)


async def test_a_key_forgotten_while_it_runs_halts(house: TelegramHouse) -> None:
    courier = await house.open()
    await house.forget_everybody()

    async def halts() -> bool:
        return isinstance(await one(courier, house.address(1)), Halted)

    halted: bool = await until(halts)
    assert halted


async def test_a_user_whose_key_is_forgotten_is_told_to_sign_in(house: TelegramHouse) -> None:
    await house.become_user()
    await house.forget_everybody()
    with pytest.raises(SetupError, match="sign in anew"):
        await house.open()


BAD_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({}, "ADA_TELEGRAM_BOT_TOKEN or ADA_TELEGRAM_SESSION"),
    ({"bot_token": "1:a", "session": "b"}, "not both"),
    ({"bot_token": "1:a", "server": "127.0.0.1:1"}, "ADA_TELEGRAM_SERVER_KEY"),
    ({"bot_token": "1:a", "server": "nowhere", "server_key": "-----BEGIN"}, "host:port"),
    ({"bot_token": "1:a", "server": "127.0.0.1:1", "server_key": "/nowhere"}, "PEM"),
    ({"bot_token": "1:a", "server": "127.0.0.1:1", "server_key": "-----BEGIN"}, "PKCS#1"),
    ({"session": "nosuch"}, "sign in first"),
]


@pytest.mark.parametrize(("settings", "advice"), BAD_SETTINGS, ids=[advice for _, advice in BAD_SETTINGS])
async def test_a_wrong_setting_is_told_with_what_mends_it(
    settings: dict[str, Any], advice: str, tmp_path: Path
) -> None:
    with pytest.raises(SetupError, match=advice):
        await telegram.open(telegram.Settings(1, "hash", **settings), tmp_path)


async def test_a_refused_token_and_an_absent_server_are_told_and_leave_no_lock(house: TelegramHouse) -> None:
    house.account = {"bot_token": "no token"}
    for _ in range(2):
        with pytest.raises(SetupError, match="ACCESS_TOKEN_INVALID"):
            await house.open()
    assert len(list(house.directory.glob("*.session"))) == 1
    await house.stop()
    with pytest.raises(SetupError, match="ADA_TELEGRAM_SERVER"):
        await house.open()
    await house.start()
