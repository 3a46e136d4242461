"""The Telegram courier over real MTProto: addresses and sessions."""

import json
from pathlib import Path
from typing import Any

import pytest

from couriers.sending import Deferred, Halted, Reason, Rejected, Scope, Sent, SetupError
from couriers.telegram import sign_in as telegram
from couriers.telegram.connection import user_session
from couriers.telegram.peers import PhoneCache, PhoneOwner
from tests.couriers.telegram_provider import TelegramProvider, provider, send_one
from tests.support.waiting import until

__all__ = ["provider"]

# addresses


async def test_a_bot_sends_to_an_id_with_one_request(provider: TelegramProvider) -> None:
    courier = await provider.open()
    before = provider.state.counters()["telegram"]
    for number in range(5):
        await send_one(courier, provider.address(number))
    assert provider.state.counters()["telegram"] == before | {"sendMessage": 5}


async def test_a_username_is_resolved_once(provider: TelegramProvider) -> None:
    courier = await provider.open()
    for text in ("one", "two"):
        assert isinstance(await send_one(courier, "@Some_Student", text), Sent)
    assert provider.state.counter("telegram", "resolveUsername") == 1
    received = provider.state.inbox("telegram")
    assert [each.text for each in received] == ["one", "two"]
    assert len({each.address for each in received}) == 1


@pytest.mark.parametrize("address", ["", "somebody", "@", "12a", "+", "+7 999", "٣٤٥", "1" * 30])
async def test_an_invalid_address_is_rejected(provider: TelegramProvider, address: str) -> None:
    await provider.use_user_account()
    outcome = await send_one(await provider.open(), address)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.RECIPIENT_UNREACHABLE


async def test_an_outdated_access_hash_is_looked_up_again(provider: TelegramProvider) -> None:
    """The stored access hash is no longer accepted by Telegram."""
    await provider.use_user_account()
    courier = await provider.open()
    assert isinstance(await send_one(courier, "+79990000078"), Sent)
    phones = next(provider.directory.glob("*.phones"))
    await courier.close()
    answer = json.loads(phones.read_text())
    answer["owner"]["access_hash"] += 1
    phones.write_text(json.dumps(answer))
    assert isinstance(await send_one(await provider.open(), "+79990000078", "again"), Sent)
    assert [each.text for each in provider.state.inbox("telegram")] == ["hello", "again"]


async def test_a_phone_is_looked_up_once_even_after_a_restart(provider: TelegramProvider) -> None:
    await provider.use_user_account()
    courier = await provider.open()
    assert isinstance(await send_one(courier, "+79990000078"), Sent)
    await courier.close()
    assert isinstance(await send_one(await provider.open(), "+79990000078", "again"), Sent)
    assert provider.state.counter("telegram", "importContacts") == 1


def test_a_person_is_known_by_the_number_that_was_looked_up_last(tmp_path: Path) -> None:
    """Also if that number was looked up before, when it was nobody's."""
    anna, boris = PhoneOwner(5, 50), PhoneOwner(6, 60)
    known = [("+1", None), ("+2", anna), ("+3", boris), ("+1", anna)]
    for count, number in ((1, ""), (2, "+2"), (3, "+2"), (4, "+1")):
        phones = PhoneCache(tmp_path / f"{count}.phones")
        for phone, owner in known[:count]:
            phones.store(phone, owner)
        for cache in (phones, PhoneCache(tmp_path / f"{count}.phones")):
            assert cache.phone_of(5) == number


async def test_an_unregistered_phone_is_not_looked_up_again_the_same_day(provider: TelegramProvider) -> None:
    await provider.use_user_account()
    courier = await provider.open()
    provider.inject_fault("not_registered", method="importContacts")
    for _ in range(2):
        assert isinstance(await send_one(courier, "+79990000078"), Rejected)
    assert provider.state.counter("telegram", "importContacts") == 1


@pytest.mark.parametrize("fault", ["retry_contacts", "flood_wait"])
async def test_a_throttled_lookup_defers_only_its_recipient(provider: TelegramProvider, fault: str) -> None:
    await provider.use_user_account()
    courier = await provider.open()
    assert isinstance(await send_one(courier, "+79990000077"), Sent)
    provider.inject_fault(fault, method="importContacts")
    waiting = await send_one(courier, "+79990000078")
    assert isinstance(waiting, Deferred)
    assert (waiting.reason, waiting.scope) == (Reason.THROTTLED, Scope.RECIPIENT)
    assert waiting.after
    assert isinstance(await send_one(courier, "+79990000077", "still served"), Sent)


async def test_a_bot_cannot_look_up_phones(provider: TelegramProvider) -> None:
    assert isinstance(await send_one(await provider.open(), "+79990000078"), Rejected)
    assert provider.state.counter("telegram", "importContacts") == 0


# sessions


async def test_two_processes_of_a_bot_have_their_own_sessions_and_reuse_them(provider: TelegramProvider) -> None:
    couriers = [await provider.open(), await provider.open()]
    for courier in couriers:
        assert isinstance(await send_one(courier, provider.address(1), "from both"), Sent)
        await courier.close()
    again = await provider.open()
    assert isinstance(await send_one(again, provider.address(2)), Sent)
    assert provider.state.counter("telegram", "importBotAuthorization") == 2
    assert len(list(provider.directory.glob("*.session"))) == 2
    assert provider.received(provider.address(1)) == ["from both"]


async def test_processes_of_one_bot_do_not_download_what_the_others_sent(provider: TelegramProvider) -> None:
    """Telethon called updates.getDifference half a second after it found a gap in the numbers of its own messages."""
    couriers = [await provider.open(), await provider.open()]
    before = provider.state.counter("telegram", "getDifference")
    for number in range(6):
        assert isinstance(await send_one(couriers[number % 2], provider.address(number)), Sent)
    with pytest.raises(AssertionError, match="not within"):
        await until(lambda: provider.state.counter("telegram", "getDifference") > before, within=2)


async def test_a_user_session_is_used_by_one_process(provider: TelegramProvider) -> None:
    await provider.use_user_account()
    courier = await provider.open()
    with pytest.raises(SetupError, match="one connection"):
        await provider.open()
    await courier.close()
    assert isinstance(await send_one(await provider.open(), provider.address(1)), Rejected | Sent)


def test_a_session_string_with_a_slip_is_refused_without_its_text(tmp_path: Path) -> None:
    """It stood in the log, in doctor and in the console, as the name of a file; with it anybody is the account."""
    with pytest.raises(SetupError, match="ADA_TELEGRAM_SESSION is no session string") as refused:
        user_session(tmp_path, "1AgAOMTQ5LjE1NC4xNjcu")
    assert "AgAOMTQ5" not in str(refused.value)


async def test_only_the_owner_can_read_a_session_file(provider: TelegramProvider) -> None:
    await provider.open()
    assert {path.stat().st_mode & 0o077 for path in provider.directory.glob("*.session")} == {0}
    assert provider.directory.stat().st_mode & 0o077 == 0


async def test_a_bot_with_a_forgotten_key_signs_in_again(provider: TelegramProvider) -> None:
    await (await provider.open()).close()
    await provider.lose_sessions()
    assert isinstance(await send_one(await provider.open(), provider.address(1)), Sent)


async def test_a_key_forgotten_while_the_courier_runs_halts_it(provider: TelegramProvider) -> None:
    courier = await provider.open()
    await provider.lose_sessions()

    async def halts() -> bool:
        return isinstance(await send_one(courier, provider.address(1)), Halted)

    halted: bool = await until(halts)
    assert halted


async def test_a_user_with_a_forgotten_key_is_a_setup_error(provider: TelegramProvider) -> None:
    await provider.use_user_account()
    await provider.lose_sessions()
    with pytest.raises(SetupError, match="sign in again"):
        await provider.open()


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
async def test_a_wrong_setting_is_a_setup_error_with_advice(
    settings: dict[str, Any], advice: str, tmp_path: Path
) -> None:
    with pytest.raises(SetupError, match=advice):
        await telegram.open(telegram.Settings(1, "hash", **settings), tmp_path)


async def test_a_refused_token_and_an_unreachable_server_are_setup_errors_and_leave_no_lock(
    provider: TelegramProvider,
) -> None:
    provider.account = {"bot_token": "no token"}
    for _ in range(2):
        with pytest.raises(SetupError, match="ACCESS_TOKEN_INVALID"):
            await provider.open()
    assert len(list(provider.directory.glob("*.session"))) == 1
    await provider.stop()
    with pytest.raises(SetupError, match="ADA_TELEGRAM_SERVER"):
        await provider.open()
    await provider.start()
