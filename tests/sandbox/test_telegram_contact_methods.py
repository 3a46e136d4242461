"""Contacts, phones and usernames in the Telegram sandbox."""

from typing import Any

import pytest
from telethon.tl import functions as f
from telethon.tl import types as t

from tests.sandbox.telegram_clients import USER, TelegramSandbox, request_once, rpc_error, send


class TestContactMethods:
    async def test_an_imported_phone_can_receive_messages(self, telegram: TelegramSandbox) -> None:
        client = await telegram.user()
        contacts = [t.InputPhoneContact(n, phone, "A", "B") for n, phone in ((1, "+7 999 010-00-01"), (2, "123"))]
        answer = await client(f.contacts.ImportContactsRequest(contacts))
        assert [(found.user_id, found.client_id) for found in answer.imported] == [(USER, 1)]
        assert (answer.users[0].phone, answer.users[0].contact) == ("79990100001", True)
        assert await client(send(access_hash=answer.users[0].access_hash))
        assert [user.id for user in (await client(f.contacts.GetContactsRequest(0))).users] == [USER]

    async def test_a_contact_is_found_by_id_without_hash_and_a_stranger_is_not(self, telegram: TelegramSandbox) -> None:
        client = await telegram.user()
        await request_once(client, f.contacts.ImportContactsRequest([t.InputPhoneContact(1, "+79990100001", "A", "B")]))
        known, stranger = await client(
            f.users.GetUsersRequest([t.InputUser(USER, 0), t.InputUser(USER + 1, access_hash=0)])
        )
        assert isinstance(known, t.User)
        assert isinstance(stranger, t.UserEmpty)
        await telegram.restart()
        await telegram.restart()
        [still] = await request_once(client, f.users.GetUsersRequest([t.InputUser(USER, 0)]))
        assert isinstance(still, t.User)

    async def test_an_import_may_have_to_be_repeated(self, telegram: TelegramSandbox) -> None:
        client = await telegram.user()
        telegram.inject_fault("retry_contacts", method="importContacts")
        request = f.contacts.ImportContactsRequest([t.InputPhoneContact(8, "+79990100001", "A", "B")])
        first, again = await client(request), await client(request)
        assert (first.imported, first.retry_contacts) == ([], [8])
        assert (again.imported[0].client_id, again.retry_contacts) == (8, [])

    async def test_an_unregistered_phone_is_not_imported(self, telegram: TelegramSandbox) -> None:
        client = await telegram.user()
        telegram.inject_fault("not_registered", method="importContacts")
        answer = await client(f.contacts.ImportContactsRequest([t.InputPhoneContact(8, "+79990100001", "A", "B")]))
        assert (answer.imported, answer.retry_contacts, answer.users) == ([], [], [])

    async def test_imports_have_their_own_flood_wait(self, telegram: TelegramSandbox) -> None:
        client = await telegram.user()
        telegram.inject_fault("flood_wait", 50, method="importContacts")
        request = f.contacts.ImportContactsRequest([])
        assert await rpc_error(client, request) == (420, "FLOOD_WAIT_50")
        telegram.time += 10
        assert await rpc_error(client, request) == (420, "FLOOD_WAIT_40")
        note = f.messages.SendMessageRequest(t.InputPeerSelf(), "not throttled", random_id=1)
        assert await request_once(client, note)
        telegram.time += 40
        assert await request_once(client, request)

    @pytest.mark.parametrize(
        "request_", [f.contacts.ImportContactsRequest([]), f.contacts.ResolvePhoneRequest("+79990100001")]
    )
    async def test_bots_have_no_contacts(self, telegram: TelegramSandbox, request_: Any) -> None:
        assert await rpc_error(await telegram.bot(), request_) == (400, "BOT_METHOD_INVALID")

    async def test_a_phone_is_resolved(self, telegram: TelegramSandbox) -> None:
        client = await telegram.user()
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        assert (found.peer.user_id, found.users[0].phone) == (USER, None)
        assert await rpc_error(client, f.contacts.ResolvePhoneRequest("12")) == (400, "PHONE_NOT_OCCUPIED")

    async def test_a_username_is_resolved(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        assert (await client.get_entity("@user100001")).id == USER
        named = await client.get_entity("@ivanov_i")
        assert named.id == (await client.get_entity("@Ivanov_I")).id
        telegram.inject_fault("not_registered", method="resolveUsername")
        request = f.contacts.ResolveUsernameRequest("somebody")
        assert await rpc_error(client, request) == (400, "USERNAME_NOT_OCCUPIED")
        assert await rpc_error(client, f.contacts.ResolveUsernameRequest("?")) == (400, "USERNAME_INVALID")

    async def test_a_bot_finds_any_user_by_id(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        person = await client.get_entity(USER)
        assert (person.id, person.phone) == (USER, None)
        full = await client(f.users.GetFullUserRequest(USER))
        assert (full.full_user.id, full.users[0].first_name) == (USER, person.first_name)

    async def test_a_bot_finds_a_supergroup_by_id_and_a_user_does_not(self, telegram: TelegramSandbox) -> None:
        bot, user = await telegram.bot(), await telegram.user()
        request = f.channels.GetChannelsRequest([t.InputChannel(66, access_hash=0)])
        assert await rpc_error(user, request) == (400, "CHANNEL_INVALID")
        [found] = (await bot(request)).chats
        peer = t.InputPeerChannel(66, found.access_hash)
        assert await bot(f.messages.SendMessageRequest(peer, "all", random_id=1))
