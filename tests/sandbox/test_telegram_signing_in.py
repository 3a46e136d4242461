"""Signing in to the sandbox's Telegram: tokens, codes, sessions that outlive a restart."""

import asyncio

import pytest
from telethon import errors
from telethon.tl import functions as f
from telethon.tl import types as t

from tests.sandbox.telegram_clients import BOT, Place, asked, refusal, send

pytestmark = pytest.mark.row("D-43")


class TestSigningIn:
    async def test_a_bot_signs_in_by_its_token(self, place: Place) -> None:
        client = await place.client()
        assert not await client.is_user_authorized()
        me = await client.sign_in(bot_token=BOT)
        assert (me.id, me.bot, me.is_self, me.phone) == (4242, True, True, None)
        assert (await client.get_me()).id == 4242

    async def test_a_user_signs_in_by_phone_and_any_code_of_five_digits(self, place: Place) -> None:
        me = await (await place.user("+79990000077")).get_me()
        assert (me.id, me.bot, me.phone) == (77, False, "79990000077")

    async def test_start_does_the_same(self, place: Place) -> None:
        client = await place.client()
        await client.start(phone="+79990000078", code_callback=lambda: "54321")
        assert (await client.get_me()).id == 78

    @pytest.mark.parametrize("token", ["nonsense", "4242", ":abcdefghijklm", "4242:", "0:abcdefghijklm", "4242:a b"])
    async def test_a_token_of_the_wrong_form_is_refused(self, place: Place, token: str) -> None:
        with pytest.raises(errors.AccessTokenInvalidError):
            await (await place.client()).sign_in(bot_token=token)

    @pytest.mark.parametrize("code", ["1234", "123456", "abcde"])
    async def test_another_code_is_refused(self, place: Place, code: str) -> None:
        client = await place.client()
        sent = await client.send_code_request("+79990000077")
        with pytest.raises(errors.PhoneCodeInvalidError):
            await asked(client, f.auth.SignInRequest("+79990000077", sent.phone_code_hash, code))

    async def test_a_code_for_another_phone_is_refused(self, place: Place) -> None:
        client = await place.client()
        sent = await client.send_code_request("+79990000077")
        with pytest.raises(errors.PhoneCodeExpiredError):
            await asked(client, f.auth.SignInRequest("+79990000078", sent.phone_code_hash, "22222"))

    async def test_what_is_no_phone_is_refused(self, place: Place) -> None:
        with pytest.raises(errors.PhoneNumberInvalidError):
            await (await place.client()).send_code_request("123")

    async def test_nobody_sends_without_signing_in(self, place: Place) -> None:
        client = await place.client()
        assert await refusal(client, send()) == (401, "AUTH_KEY_UNREGISTERED")
        assert place.texts() == []

    async def test_logging_out_ends_the_session(self, place: Place) -> None:
        client = await place.bot()
        session = client.session.save()
        assert await client.log_out()
        assert not await (await place.client(session)).is_user_authorized()

    async def test_a_stored_session_is_still_signed_in_after_a_restart_of_the_server(self, place: Place) -> None:
        client = await place.bot()
        session = client.session.save()
        await client.disconnect()
        pem = place.server.public_key_pem
        await place.restart()
        assert place.server.public_key_pem == pem
        again = await place.client(session)
        assert (await again.get_me()).id == 4242
        assert await asked(again, send())

    async def test_a_connected_client_comes_back_by_itself_after_a_restart(self, place: Place) -> None:
        client = await place.bot()
        await place.restart()
        await asked(client, send("after"))
        assert place.texts() == ["after"]

    async def test_message_ids_go_on_after_a_restart(self, place: Place) -> None:
        client = await place.bot()
        before = await asked(client, send(random_id=1))
        await place.restart()
        after = await asked(client, send(random_id=2))
        assert after.id > before.id

    async def test_a_session_that_the_server_never_saw_is_told_so(self, place: Place) -> None:
        client = await place.bot()
        session = client.session.save()
        await client.disconnect()
        (place.directory / "sessions.jsonl").unlink()
        await place.restart()
        with pytest.raises((errors.AuthKeyNotFound, ConnectionError)):
            await asked(await place.client(session), send())

    async def test_a_line_cut_off_by_a_kill_loses_nothing_else(self, place: Place) -> None:
        client = await place.bot()
        session = client.session.save()
        await client.disconnect()
        await place.server.stop()
        with (place.directory / "sessions.jsonl").open("a") as file:
            file.write('{"key": "00')
        await place.restart()
        assert await (await place.client(session)).is_user_authorized()

    async def test_session_files_are_for_their_owner_only(self, place: Place) -> None:
        await place.bot()
        for name in ("sessions.jsonl", "server-key.pem"):
            assert (place.directory / name).stat().st_mode & 0o077 == 0

    async def test_two_accounts_work_at_once_and_each_sends_as_itself(self, place: Place) -> None:
        one, other = await place.bot("1001:sandbox-token"), await place.user()
        await other(f.contacts.ImportContactsRequest([t.InputPhoneContact(1, "+79990100001", "A", "B")]))
        await asyncio.gather(one(send("from the bot")), other(send("from the user")))
        assert sorted(place.texts()) == ["from the bot", "from the user"]

    async def test_two_connections_of_one_account_work_at_once(self, place: Place) -> None:
        one, other = await place.bot(), await place.bot()
        answers = await asyncio.gather(one(send("a", random_id=1)), other(send("b", random_id=2)))
        assert len({answer.id for answer in answers}) == 2
