"""The Telegram courier over real MTProto: whom an address means, and the sessions of accounts."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.courier.interface import Deferred, Halted, Rejected, Scope, Sent
from core.errors import SetupError
from core.model.states import Reason
from couriers import telegram
from tests.couriers.telegram_sandbox import TelegramHouse, house, one
from tests.support.waiting import until

__all__ = ["house"]

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


@pytest.mark.row("D-19")
async def test_processes_of_one_bot_do_not_read_what_the_others_sent(house: TelegramHouse) -> None:
    """Telethon fetched it with updates.getDifference, half a second after it had seen a gap in its own numbers."""
    couriers = [await house.open(), await house.open()]
    asked = house.world.counted("telegram", "getDifference")
    for number in range(6):
        assert isinstance(await one(couriers[number % 2], house.address(number)), Sent)
    with pytest.raises(AssertionError, match="not within"):
        await until(lambda: house.world.counted("telegram", "getDifference") > asked, within=2)


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
