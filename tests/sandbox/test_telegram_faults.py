"""Every fault of the Telegram sandbox, as Telethon receives it."""

import asyncio

import pytest
from telethon import errors

from sandbox.telegram.methods.faults import NAMES
from tests.sandbox.telegram_clients import USER, TelegramSandbox, assert_no_answer, request_once, rpc_error, send
from tests.support.waiting import until

REFUSALS = {
    "privacy": (403, "USER_PRIVACY_RESTRICTED", errors.UserPrivacyRestrictedError),
    "premium_required": (406, "PRIVACY_PREMIUM_REQUIRED", errors.AuthKeyError),
    "payment_required": (403, "ALLOW_PAYMENT_REQUIRED_7", errors.ForbiddenError),
    "blocked": (400, "USER_IS_BLOCKED", errors.UserIsBlockedError),
    "deactivated": (400, "INPUT_USER_DEACTIVATED", errors.InputUserDeactivatedError),
    "peer_invalid": (400, "PEER_ID_INVALID", errors.PeerIdInvalidError),
    "write_forbidden": (403, "CHAT_WRITE_FORBIDDEN", errors.ChatWriteForbiddenError),
    "peer_flood": (400, "PEER_FLOOD", errors.PeerFloodError),
    "frozen": (420, "FROZEN_METHOD_INVALID", errors.FrozenMethodInvalidError),
    "auth_key_unregistered": (401, "AUTH_KEY_UNREGISTERED", errors.AuthKeyUnregisteredError),
    "session_revoked": (401, "SESSION_REVOKED", errors.SessionRevokedError),
    "deactivated_ban": (401, "USER_DEACTIVATED_BAN", errors.UserDeactivatedBanError),
    "auth_key_duplicated": (406, "AUTH_KEY_DUPLICATED", errors.AuthKeyDuplicatedError),
    "server_error": (500, "INTERNAL_SERVER_ERROR", errors.ServerError),
    "message_too_long": (400, "MESSAGE_TOO_LONG", errors.MessageTooLongError),
    "message_empty": (400, "MESSAGE_EMPTY", errors.MessageEmptyError),
    "flood_wait": (420, "FLOOD_WAIT_7", errors.FloodWaitError),
    "slow_mode": (420, "SLOWMODE_WAIT_7", errors.SlowModeWaitError),
}
OTHER_FAULTS = {
    "random_id_duplicate",
    "stored_then_error",
    "timeout",
    "stored_then_silence",
    "disconnect_before",
    "disconnect_after",
    "slow",
    "rate_limit",
    "stored_then_refused",
    "second_refused",
}


class TestFaults:
    def test_every_fault_has_a_test(self) -> None:
        assert set(REFUSALS) | OTHER_FAULTS == NAMES

    @pytest.mark.parametrize("name", REFUSALS)
    async def test_a_refusal_has_telegrams_code_and_text_and_stores_nothing(
        self, telegram: TelegramSandbox, name: str
    ) -> None:
        client = await telegram.bot()
        code, text, kind = REFUSALS[name]
        value = None if name == "server_error" else 7
        telegram.inject_fault(name, value)
        assert await rpc_error(client, send(random_id=1)) == (code, text)
        telegram.time += 100
        telegram.inject_fault(name, value)
        with pytest.raises(kind):
            await request_once(client, send(random_id=2))
        assert telegram.texts() == []
        telegram.time += 100
        assert await request_once(client, send("works again", random_id=1))

    async def test_a_magic_recipient_has_its_fault_every_time(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        for _ in range(3):
            assert await rpc_error(client, send(to=900_003)) == (403, "USER_PRIVACY_RESTRICTED")

    async def test_a_flood_wait_throttles_the_account_and_counts_down(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        other = await telegram.bot("1001:sandbox-token")
        telegram.inject_fault("flood_wait", 60)
        assert await rpc_error(client, send(random_id=1)) == (420, "FLOOD_WAIT_60")
        telegram.time += 20.5
        assert await rpc_error(client, send(random_id=2, to=5)) == (420, "FLOOD_WAIT_40")
        assert await request_once(other, send("of another account"))
        assert await client.get_me()
        telegram.time += 39.5
        assert await request_once(client, send("afterwards", random_id=3))
        assert telegram.texts() == ["of another account", "afterwards"]

    async def test_messages_beyond_a_rate_limit_are_refused_for_a_second(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        telegram.inject_fault("rate_limit", 2, times=None)
        for number in (1, 2):
            await request_once(client, send(random_id=number, to=number))
        assert await rpc_error(client, send(random_id=3, to=3)) == (420, "FLOOD_WAIT_1")
        assert await rpc_error(client, send(random_id=4, to=4)) == (420, "FLOOD_WAIT_1")
        telegram.time += 1
        assert await request_once(client, send(random_id=3, to=3))
        assert telegram.state.counter("telegram", "refused") == 1

    async def test_a_stored_message_is_refused_when_it_is_repeated(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        telegram.inject_fault("stored_then_refused", times=None)
        assert await rpc_error(client, send(random_id=1)) == (500, "INTERNAL_SERVER_ERROR")
        assert await rpc_error(client, send(random_id=1)) == (400, "USER_IS_BLOCKED")
        assert len(telegram.texts()) == 1

    async def test_only_the_first_message_to_a_recipient_is_stored(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        telegram.inject_fault("second_refused", times=None)
        for _ in range(2):
            assert await request_once(client, send("first", random_id=1))
        assert await rpc_error(client, send("second", random_id=2)) == (400, "USER_IS_BLOCKED")
        assert telegram.texts() == ["first"]

    async def test_slow_mode_throttles_one_chat(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        telegram.inject_fault("slow_mode", 10)
        assert await rpc_error(client, send(random_id=1)) == (420, "SLOWMODE_WAIT_10")
        telegram.time += 4
        assert await rpc_error(client, send(random_id=2)) == (420, "SLOWMODE_WAIT_6")
        assert await request_once(client, send(random_id=3, to=5))
        telegram.time += 6
        assert await request_once(client, send(random_id=2))

    async def test_stored_then_error_is_received_once_and_a_repeat_returns_its_id(
        self, telegram: TelegramSandbox
    ) -> None:
        client = await telegram.bot()
        telegram.inject_fault("stored_then_error")
        assert await rpc_error(client, send(random_id=7)) == (500, "INTERNAL_SERVER_ERROR")
        [received] = telegram.state.inbox()
        assert str((await request_once(client, send(random_id=7))).id) == received.reference
        assert len(telegram.texts()) == 1

    async def test_stored_then_error_with_another_code(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        telegram.inject_fault("stored_then_error", -503)
        assert await rpc_error(client, send()) == (-503, "Timeout")

    async def test_telethon_repeats_after_a_server_error_and_gets_the_same_message(
        self, telegram: TelegramSandbox
    ) -> None:
        client = await telegram.bot(request_retries=1)
        telegram.inject_fault("stored_then_error")
        answer = await client(send())
        assert [message.reference for message in telegram.state.inbox()] == [str(answer.id)]

    async def test_random_id_duplicate_means_the_message_is_stored(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        telegram.inject_fault("random_id_duplicate", 3)
        for _ in range(3):
            assert await rpc_error(client, send(random_id=7)) == (500, "RANDOM_ID_DUPLICATE")
        assert str((await request_once(client, send(random_id=7))).id) == telegram.state.inbox()[0].reference
        assert len(telegram.texts()) == 1

    async def test_a_random_id_is_a_duplicate_until_its_request_is_answered(self, telegram: TelegramSandbox) -> None:
        client, other = await telegram.bot(), await telegram.bot()
        telegram.inject_fault("slow", 1)
        slow = asyncio.ensure_future(request_once(client, send(random_id=7)))
        await until(lambda: telegram.state.counter("telegram", "sendMessage"))
        assert await rpc_error(other, send(random_id=7)) == (500, "RANDOM_ID_DUPLICATE")
        assert telegram.texts() == []
        answer = await slow
        assert (await request_once(other, send(random_id=7))).id == answer.id
        assert len(telegram.texts()) == 1

    async def test_a_timeout_is_never_answered_and_stores_nothing(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        telegram.inject_fault("timeout")
        await assert_no_answer(request_once(client, send(random_id=7)))
        assert telegram.texts() == []
        assert await request_once(client, send(random_id=7))

    async def test_stored_then_silence_is_received_but_never_answered(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        telegram.inject_fault("stored_then_silence")
        await assert_no_answer(request_once(client, send(random_id=7)))
        assert len(telegram.texts()) == 1
        assert str((await request_once(client, send(random_id=7))).id) == telegram.state.inbox()[0].reference
        assert len(telegram.texts()) == 1

    async def test_disconnect_before_stores_nothing(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot(auto_reconnect=False)
        telegram.inject_fault("disconnect_before")
        with pytest.raises((ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError)):
            await request_once(client, send(random_id=7))
        assert telegram.texts() == []

    async def test_requests_after_a_disconnect_are_not_received(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot(auto_reconnect=False)
        telegram.inject_fault("disconnect_before")
        both = asyncio.gather(*(request_once(client, send(random_id=n)) for n in (1, 2)), return_exceptions=True)
        assert all(isinstance(answer, BaseException) for answer in await both)
        assert telegram.texts() == []

    async def test_disconnect_after_stores_the_message(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot(auto_reconnect=False)
        telegram.inject_fault("disconnect_after")
        with pytest.raises((ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError)):
            await request_once(client, send(random_id=7))
        assert len(telegram.texts()) == 1

    @pytest.mark.parametrize("name", ["disconnect_before", "disconnect_after"])
    async def test_telethon_reconnects_and_the_message_is_received_once(
        self, telegram: TelegramSandbox, name: str
    ) -> None:
        client = await telegram.bot()
        telegram.inject_fault(name)
        answer = await client(send(random_id=7))
        assert [message.reference for message in telegram.state.inbox()] == [str(answer.id)]

    async def test_a_magic_disconnect_does_not_block_other_messages(self, telegram: TelegramSandbox) -> None:
        """The client repeats the message when it has reconnected, so a disconnect at each attempt would never end."""
        client = await telegram.bot()
        users = [USER, 900_015, 900_016, 5]
        await asyncio.wait_for(asyncio.gather(*(client(send(to=n)) for n in users)), 20)
        assert sorted(message.address for message in telegram.state.inbox()) == sorted(map(str, users))

    async def test_a_client_survives_a_disconnect_of_the_server(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        telegram.server.disconnect()
        assert await client(send())
        assert len(telegram.texts()) == 1
