"""Every failure that the sandbox's Telegram can be told to play, as Telethon sees it."""

import asyncio

import pytest
from telethon import errors

from sandbox.telegram.faults import NAMES
from tests.sandbox.telegram_clients import PERSON, Place, asked, refusal, send, unanswered
from tests.support.waiting import until

pytestmark = pytest.mark.row("D-43")


REFUSED = {
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
NOT_PLAIN_REFUSALS = {
    "random_id_duplicate",
    "stored_then_error",
    "timeout",
    "stored_then_silence",
    "disconnect_before",
    "disconnect_after",
    "slow",
}


class TestFaults:
    def test_every_fault_has_a_test(self) -> None:
        assert set(REFUSED) | NOT_PLAIN_REFUSALS == NAMES

    @pytest.mark.parametrize("name", REFUSED)
    async def test_a_refusal_has_telegrams_code_and_text_and_stores_nothing(self, place: Place, name: str) -> None:
        client = await place.bot()
        code, text, kind = REFUSED[name]
        value = None if name == "server_error" else 7
        place.order(name, value)
        assert await refusal(client, send(random_id=1)) == (code, text)
        place.time += 100
        place.order(name, value)
        with pytest.raises(kind):
            await asked(client, send(random_id=2))
        assert place.texts() == []
        place.time += 100
        assert await asked(client, send("works again", random_id=1))

    async def test_a_magic_recipient_meets_with_its_failure_every_time(self, place: Place) -> None:
        client = await place.bot()
        for _ in range(3):
            assert await refusal(client, send(to=900_003)) == (403, "USER_PRIVACY_RESTRICTED")

    async def test_a_flood_wait_holds_the_account_and_counts_down(self, place: Place) -> None:
        client = await place.bot()
        other = await place.bot("1001:sandbox-token")
        place.order("flood_wait", 60)
        assert await refusal(client, send(random_id=1)) == (420, "FLOOD_WAIT_60")
        place.time += 20.5
        assert await refusal(client, send(random_id=2, to=5)) == (420, "FLOOD_WAIT_40")
        assert await asked(other, send("of another account"))
        assert await client.get_me()
        place.time += 39.5
        assert await asked(client, send("afterwards", random_id=3))
        assert place.texts() == ["of another account", "afterwards"]

    async def test_slow_mode_holds_one_chat(self, place: Place) -> None:
        client = await place.bot()
        place.order("slow_mode", 10)
        assert await refusal(client, send(random_id=1)) == (420, "SLOWMODE_WAIT_10")
        place.time += 4
        assert await refusal(client, send(random_id=2)) == (420, "SLOWMODE_WAIT_6")
        assert await asked(client, send(random_id=3, to=5))
        place.time += 6
        assert await asked(client, send(random_id=2))

    async def test_stored_then_error_is_received_once_and_the_repeat_tells_its_number(self, place: Place) -> None:
        client = await place.bot()
        place.order("stored_then_error")
        assert await refusal(client, send(random_id=7)) == (500, "INTERNAL_SERVER_ERROR")
        [received] = place.world.inbox()
        assert str((await asked(client, send(random_id=7))).id) == received.reference
        assert len(place.texts()) == 1

    async def test_stored_then_error_with_a_code_of_its_own(self, place: Place) -> None:
        client = await place.bot()
        place.order("stored_then_error", -503)
        assert await refusal(client, send()) == (-503, "Timeout")

    async def test_telethon_itself_repeats_an_error_of_the_server_to_the_same_message(self, place: Place) -> None:
        client = await place.bot(request_retries=1)
        place.order("stored_then_error")
        answer = await client(send())
        assert [message.reference for message in place.world.inbox()] == [str(answer.id)]

    async def test_random_id_duplicate_means_the_message_is_there(self, place: Place) -> None:
        client = await place.bot()
        place.order("random_id_duplicate", 3)
        for _ in range(3):
            assert await refusal(client, send(random_id=7)) == (500, "RANDOM_ID_DUPLICATE")
        assert str((await asked(client, send(random_id=7))).id) == place.world.inbox()[0].reference
        assert len(place.texts()) == 1

    async def test_a_random_id_in_process_is_a_duplicate_until_it_is_answered(self, place: Place) -> None:
        client, other = await place.bot(), await place.bot()
        place.order("slow", 1)
        slow = asyncio.ensure_future(asked(client, send(random_id=7)))
        await until(lambda: place.world.counted("telegram", "sendMessage"))
        assert await refusal(other, send(random_id=7)) == (500, "RANDOM_ID_DUPLICATE")
        assert place.texts() == []
        answer = await slow
        assert (await asked(other, send(random_id=7))).id == answer.id
        assert len(place.texts()) == 1

    async def test_a_timeout_is_never_answered_and_stores_nothing(self, place: Place) -> None:
        client = await place.bot()
        place.order("timeout")
        await unanswered(asked(client, send(random_id=7)))
        assert place.texts() == []
        assert await asked(client, send(random_id=7))

    async def test_stored_then_silence_is_never_answered_but_received(self, place: Place) -> None:
        client = await place.bot()
        place.order("stored_then_silence")
        await unanswered(asked(client, send(random_id=7)))
        assert len(place.texts()) == 1
        assert str((await asked(client, send(random_id=7))).id) == place.world.inbox()[0].reference
        assert len(place.texts()) == 1

    async def test_a_cut_before_stores_nothing_and_the_client_repeats(self, place: Place) -> None:
        lonely = await place.bot(auto_reconnect=False)
        place.order("disconnect_before")
        with pytest.raises((ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError)):
            await asked(lonely, send(random_id=7))
        assert place.texts() == []

    async def test_what_travelled_behind_a_cut_was_never_received(self, place: Place) -> None:
        lonely = await place.bot(auto_reconnect=False)
        place.order("disconnect_before")
        both = asyncio.gather(*(asked(lonely, send(random_id=n)) for n in (1, 2)), return_exceptions=True)
        assert all(isinstance(answer, BaseException) for answer in await both)
        assert place.texts() == []

    async def test_a_cut_after_has_stored_the_message(self, place: Place) -> None:
        lonely = await place.bot(auto_reconnect=False)
        place.order("disconnect_after")
        with pytest.raises((ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError)):
            await asked(lonely, send(random_id=7))
        assert len(place.texts()) == 1

    @pytest.mark.parametrize("name", ["disconnect_before", "disconnect_after"])
    async def test_telethon_reconnects_after_a_cut_and_the_message_arrives_once(self, place: Place, name: str) -> None:
        client = await place.bot()
        place.order(name)
        answer = await client(send(random_id=7))
        assert [message.reference for message in place.world.inbox()] == [str(answer.id)]

    async def test_a_magic_cut_does_not_hold_up_the_others_for_ever(self, place: Place) -> None:
        """The client repeats what was cut as soon as it is back, so a cut at every attempt would never end."""
        client = await place.bot()
        people = [PERSON, 900_015, 900_016, 5]
        await asyncio.wait_for(asyncio.gather(*(client(send(to=n)) for n in people)), 20)
        assert sorted(message.address for message in place.world.inbox()) == sorted(map(str, people))

    async def test_a_cut_by_hand_is_survived(self, place: Place) -> None:
        client = await place.bot()
        place.server.disconnect()
        assert await client(send())
        assert len(place.texts()) == 1
