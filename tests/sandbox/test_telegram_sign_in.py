"""Sign-in to the Telegram sandbox: tokens, codes, sessions that outlive a restart."""

import asyncio

import pytest
from telethon import errors
from telethon.tl import functions as f
from telethon.tl import types as t

from tests.sandbox.telegram_clients import BOT, TelegramSandbox, request_once, rpc_error, send


class TestSignIn:
    async def test_a_bot_signs_in_by_its_token(self, telegram: TelegramSandbox) -> None:
        client = await telegram.client()
        assert not await client.is_user_authorized()
        me = await client.sign_in(bot_token=BOT)
        assert (me.id, me.bot, me.is_self, me.phone) == (4242, True, True, None)
        assert (await client.get_me()).id == 4242

    async def test_a_user_signs_in_by_phone_and_any_code_of_five_digits(self, telegram: TelegramSandbox) -> None:
        me = await (await telegram.user("+79990000077")).get_me()
        assert (me.id, me.bot, me.phone) == (77, False, "79990000077")

    async def test_telethons_start_signs_in(self, telegram: TelegramSandbox) -> None:
        client = await telegram.client()
        await client.start(phone="+79990000078", code_callback=lambda: "54321")
        assert (await client.get_me()).id == 78

    @pytest.mark.parametrize("token", ["nonsense", "4242", ":abcdefghijklm", "4242:", "0:abcdefghijklm", "4242:a b"])
    async def test_a_token_of_the_wrong_form_is_refused(self, telegram: TelegramSandbox, token: str) -> None:
        with pytest.raises(errors.AccessTokenInvalidError):
            await (await telegram.client()).sign_in(bot_token=token)

    @pytest.mark.parametrize("code", ["1234", "123456", "abcde"])
    async def test_an_invalid_code_is_refused(self, telegram: TelegramSandbox, code: str) -> None:
        client = await telegram.client()
        sent = await client.send_code_request("+79990000077")
        with pytest.raises(errors.PhoneCodeInvalidError):
            await request_once(client, f.auth.SignInRequest("+79990000077", sent.phone_code_hash, code))

    async def test_a_code_for_another_phone_is_refused(self, telegram: TelegramSandbox) -> None:
        client = await telegram.client()
        sent = await client.send_code_request("+79990000077")
        with pytest.raises(errors.PhoneCodeExpiredError):
            await request_once(client, f.auth.SignInRequest("+79990000078", sent.phone_code_hash, "22222"))

    async def test_an_invalid_phone_is_refused(self, telegram: TelegramSandbox) -> None:
        with pytest.raises(errors.PhoneNumberInvalidError):
            await (await telegram.client()).send_code_request("123")

    async def test_sending_needs_a_sign_in(self, telegram: TelegramSandbox) -> None:
        client = await telegram.client()
        assert await rpc_error(client, send()) == (401, "AUTH_KEY_UNREGISTERED")
        assert telegram.texts() == []

    async def test_logging_out_ends_the_session(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        session = client.session.save()
        assert await client.log_out()
        assert not await (await telegram.client(session)).is_user_authorized()

    async def test_a_stored_session_is_still_signed_in_after_a_restart_of_the_server(
        self, telegram: TelegramSandbox
    ) -> None:
        client = await telegram.bot()
        session = client.session.save()
        await client.disconnect()
        pem = telegram.server.public_key_pem
        await telegram.restart()
        assert telegram.server.public_key_pem == pem
        again = await telegram.client(session)
        assert (await again.get_me()).id == 4242
        assert await request_once(again, send())

    async def test_a_connected_client_reconnects_after_a_restart(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        await telegram.restart()
        await request_once(client, send("after"))
        assert telegram.texts() == ["after"]

    async def test_message_ids_increase_over_a_restart(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        before = await request_once(client, send(random_id=1))
        await telegram.restart()
        after = await request_once(client, send(random_id=2))
        assert after.id > before.id

    async def test_an_unknown_session_is_refused(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        session = client.session.save()
        await client.disconnect()
        (telegram.directory / "sessions.jsonl").unlink()
        await telegram.restart()
        with pytest.raises((errors.AuthKeyNotFound, ConnectionError)):
            await request_once(await telegram.client(session), send())

    async def test_a_line_cut_off_by_a_kill_is_ignored(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        session = client.session.save()
        await client.disconnect()
        await telegram.server.stop()
        with (telegram.directory / "sessions.jsonl").open("a") as file:
            file.write('{"key": "00')
        await telegram.restart()
        assert await (await telegram.client(session)).is_user_authorized()

    async def test_only_the_owner_can_read_the_sessions(self, telegram: TelegramSandbox) -> None:
        await telegram.bot()
        assert (telegram.directory / "sessions.jsonl").stat().st_mode & 0o077 == 0

    async def test_two_accounts_work_at_once_and_each_sends_as_itself(self, telegram: TelegramSandbox) -> None:
        one, other = await telegram.bot("1001:sandbox-token"), await telegram.user()
        await other(f.contacts.ImportContactsRequest([t.InputPhoneContact(1, "+79990100001", "A", "B")]))
        await asyncio.gather(one(send("from the bot")), other(send("from the user")))
        assert sorted(telegram.texts()) == ["from the bot", "from the user"]

    async def test_two_connections_of_one_account_work_at_once(self, telegram: TelegramSandbox) -> None:
        one, other = await telegram.bot(), await telegram.bot()
        answers = await asyncio.gather(one(send("a", random_id=1)), other(send("b", random_id=2)))
        assert len({answer.id for answer in answers}) == 2
