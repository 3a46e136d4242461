"""Messages to the Telegram sandbox: texts, peers, access hashes, random ids."""

import asyncio

import pytest
from telethon.tl import functions as f
from telethon.tl import types as t

from tests.sandbox.telegram_clients import USER, TelegramSandbox, request_once, rpc_error, send


class TestSending:
    async def test_a_message_is_in_the_inbox_with_its_id_and_random_id(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        answer = await client(send("Моей пары сегодня не будет", random_id=-77))
        assert isinstance(answer, t.UpdateShortSentMessage)
        [message] = telegram.state.inbox("telegram")
        assert (message.address, message.text, message.random_id) == (
            str(USER),
            "Моей пары сегодня не будет",
            -77,
        )
        assert message.reference == str(answer.id)
        assert telegram.state.counter("telegram", "sendMessage") == 1

    async def test_telethons_own_send_message_works(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        message = await client.send_message(USER, "by name")
        assert telegram.state.inbox()[0].reference == str(message.id)

    async def test_500_concurrent_messages_in_containers_are_received_once(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        answers = await asyncio.gather(*(client(send(str(n), to=n, random_id=n)) for n in range(1, 501)))
        assert len({answer.id for answer in answers}) == 500
        assert sorted(int(message.text) for message in telegram.state.inbox()) == list(range(1, 501))

    async def test_telethon_without_updates_works(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot(receive_updates=False)
        await client(send("quiet"))
        assert telegram.texts() == ["quiet"]

    async def test_a_compressed_text_is_received(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        text = ("строка " * 600)[:4096]
        await client(send(text))
        assert telegram.texts() == [text]

    @pytest.mark.parametrize("text", ["x" * 4096, "я" * 4096, "🙂" * 2048, "\u0000", "{[\"\\n\u2028]}'<b>"])
    async def test_text_of_4096_units_and_any_characters_is_received_unchanged(
        self, telegram: TelegramSandbox, text: str
    ) -> None:
        await (await telegram.bot())(send(text))
        assert telegram.texts() == [text]

    @pytest.mark.parametrize("text", ["x" * 4097, "🙂" * 2048 + "x", "🙂" * 2049])
    async def test_more_than_4096_utf16_units_are_too_long(self, telegram: TelegramSandbox, text: str) -> None:
        client = await telegram.bot()
        assert await rpc_error(client, send(text)) == (400, "MESSAGE_TOO_LONG")
        assert telegram.texts() == []

    @pytest.mark.parametrize("text", ["", " \n"])
    async def test_an_empty_message_is_refused(self, telegram: TelegramSandbox, text: str) -> None:
        assert await rpc_error(await telegram.bot(), send(text)) == (400, "MESSAGE_EMPTY")

    async def test_a_group_and_a_channel_answer_with_the_whole_message(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        for peer, address in ((t.InputPeerChat(55), "-55"), (t.InputPeerChannel(66, 0), "-10066")):
            answer = await request_once(client, f.messages.SendMessageRequest(peer, "all", random_id=9))
            id_update, new_message = answer.updates
            assert (id_update.random_id, new_message.message.message) == (9, "all")
            assert new_message.message.id == id_update.id
            assert telegram.state.inbox("telegram", address)[0].reference == str(id_update.id)

    async def test_an_account_may_write_to_itself(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        await request_once(client, f.messages.SendMessageRequest(t.InputPeerSelf(), "note", random_id=1))
        assert telegram.texts(4242) == ["note"]

    @pytest.mark.parametrize("user", [0, -5, 2**50])
    async def test_an_invalid_user_id_is_refused(self, telegram: TelegramSandbox, user: int) -> None:
        assert await rpc_error(await telegram.bot(), send(to=user)) == (400, "PEER_ID_INVALID")

    async def test_a_user_needs_the_right_access_hash(self, telegram: TelegramSandbox) -> None:
        client = await telegram.user()
        assert await rpc_error(client, send(access_hash=0)) == (400, "PEER_ID_INVALID")
        assert await rpc_error(client, send(access_hash=12345)) == (400, "PEER_ID_INVALID")
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        assert await client(send(access_hash=found.users[0].access_hash))

    async def test_an_access_hash_is_invalid_for_another_account(self, telegram: TelegramSandbox) -> None:
        one, other = await telegram.user("+79990000077"), await telegram.user("+79990000078")
        found = await one(f.contacts.ResolvePhoneRequest("+79990100001"))
        request = send(access_hash=found.users[0].access_hash)
        assert await rpc_error(other, request) == (400, "PEER_ID_INVALID")

    async def test_an_access_hash_outlives_a_restart(self, telegram: TelegramSandbox) -> None:
        client = await telegram.user()
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        await telegram.restart()
        assert await request_once(client, send(access_hash=found.users[0].access_hash))


class TestRandomIds:
    async def test_a_repeat_returns_the_same_id_and_is_not_received_again(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        first, again = await client(send(random_id=7)), await client(send(random_id=7))
        assert first.id == again.id
        assert len(telegram.texts()) == 1

    async def test_repeats_in_one_container_are_one_message(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        answers = await asyncio.gather(*(client(send(random_id=7)) for _ in range(20)))
        assert len({answer.id for answer in answers}) == 1
        assert len(telegram.texts()) == 1

    async def test_the_same_random_id_for_another_user_is_another_message(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        first, other = await client(send(random_id=7)), await client(send(random_id=7, to=5))
        assert first.id != other.id
        assert len(telegram.state.inbox()) == 2

    async def test_the_same_random_id_of_another_account_is_another_message(self, telegram: TelegramSandbox) -> None:
        for token in ("1001:sandbox-token", "1002:sandbox-token"):
            await (await telegram.bot(token))(send(random_id=7))
        assert len(telegram.texts()) == 2

    async def test_a_repeat_in_a_group_returns_the_whole_answer(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        request = f.messages.SendMessageRequest(t.InputPeerChat(55), "all", random_id=9)
        first, again = await request_once(client, request), await request_once(client, request)
        assert first.updates[0].id == again.updates[0].id
        assert telegram.texts(-55) == ["all"]

    async def test_no_random_id_is_refused(self, telegram: TelegramSandbox) -> None:
        assert await rpc_error(await telegram.bot(), send(random_id=0)) == (400, "RANDOM_ID_EMPTY")
