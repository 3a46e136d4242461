"""Contacts, phones and usernames in the sandbox's Telegram: whom an account knows."""

from typing import Any

import pytest
from telethon.tl import functions as f
from telethon.tl import types as t

from tests.sandbox.telegram_clients import PERSON, Place, asked, refusal, send

pytestmark = pytest.mark.row("D-43")


class TestPeople:
    async def test_a_phone_is_imported_and_can_be_written_to(self, place: Place) -> None:
        client = await place.user()
        contacts = [t.InputPhoneContact(n, phone, "A", "B") for n, phone in ((1, "+7 999 010-00-01"), (2, "123"))]
        answer = await client(f.contacts.ImportContactsRequest(contacts))
        assert [(found.user_id, found.client_id) for found in answer.imported] == [(PERSON, 1)]
        assert (answer.users[0].phone, answer.users[0].contact) == ("79990100001", True)
        assert await client(send(access_hash=answer.users[0].access_hash))
        assert [user.id for user in (await client(f.contacts.GetContactsRequest(0))).users] == [PERSON]

    async def test_a_contact_is_found_by_his_bare_id_afterwards_and_a_stranger_is_not(self, place: Place) -> None:
        client = await place.user()
        await asked(client, f.contacts.ImportContactsRequest([t.InputPhoneContact(1, "+79990100001", "A", "B")]))
        known, stranger = await client(
            f.users.GetUsersRequest([t.InputUser(PERSON, 0), t.InputUser(PERSON + 1, access_hash=0)])
        )
        assert isinstance(known, t.User)
        assert isinstance(stranger, t.UserEmpty)
        await place.restart()
        await place.restart()
        [still] = await asked(client, f.users.GetUsersRequest([t.InputUser(PERSON, 0)]))
        assert isinstance(still, t.User)

    async def test_telegram_may_want_an_import_to_be_repeated(self, place: Place) -> None:
        client = await place.user()
        place.order("retry_contacts", method="importContacts")
        request = f.contacts.ImportContactsRequest([t.InputPhoneContact(8, "+79990100001", "A", "B")])
        first, again = await client(request), await client(request)
        assert (first.imported, first.retry_contacts) == ([], [8])
        assert (again.imported[0].client_id, again.retry_contacts) == (8, [])

    async def test_a_phone_without_telegram_is_not_imported(self, place: Place) -> None:
        client = await place.user()
        place.order("not_registered", method="importContacts")
        answer = await client(f.contacts.ImportContactsRequest([t.InputPhoneContact(8, "+79990100001", "A", "B")]))
        assert (answer.imported, answer.retry_contacts, answer.users) == ([], [], [])

    async def test_imports_meet_with_floods_of_their_own(self, place: Place) -> None:
        client = await place.user()
        place.order("flood_wait", 50, method="importContacts")
        request = f.contacts.ImportContactsRequest([])
        assert await refusal(client, request) == (420, "FLOOD_WAIT_50")
        place.time += 10
        assert await refusal(client, request) == (420, "FLOOD_WAIT_40")
        note = f.messages.SendMessageRequest(t.InputPeerSelf(), "not held up", random_id=1)
        assert await asked(client, note)
        place.time += 40
        assert await asked(client, request)

    @pytest.mark.parametrize(
        "request_", [f.contacts.ImportContactsRequest([]), f.contacts.ResolvePhoneRequest("+79990100001")]
    )
    async def test_bots_have_no_contacts(self, place: Place, request_: Any) -> None:
        assert await refusal(await place.bot(), request_) == (400, "BOT_METHOD_INVALID")

    async def test_a_phone_is_resolved(self, place: Place) -> None:
        client = await place.user()
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        assert (found.peer.user_id, found.users[0].phone) == (PERSON, None)
        assert await refusal(client, f.contacts.ResolvePhoneRequest("12")) == (400, "PHONE_NOT_OCCUPIED")

    async def test_a_username_is_resolved(self, place: Place) -> None:
        client = await place.bot()
        assert (await client.get_entity("@user100001")).id == PERSON
        named = await client.get_entity("@ivanov_i")
        assert named.id == (await client.get_entity("@Ivanov_I")).id
        place.order("not_registered", method="resolveUsername")
        request = f.contacts.ResolveUsernameRequest("somebody")
        assert await refusal(client, request) == (400, "USERNAME_NOT_OCCUPIED")
        assert await refusal(client, f.contacts.ResolveUsernameRequest("?")) == (400, "USERNAME_INVALID")

    async def test_a_bot_finds_anybody_by_his_bare_id(self, place: Place) -> None:
        client = await place.bot()
        person = await client.get_entity(PERSON)
        assert (person.id, person.phone) == (PERSON, None)
        full = await client(f.users.GetFullUserRequest(PERSON))
        assert (full.full_user.id, full.users[0].first_name) == (PERSON, person.first_name)

    async def test_a_bot_finds_a_supergroup_by_its_bare_id_and_a_user_does_not(self, place: Place) -> None:
        bot, user = await place.bot(), await place.user()
        request = f.channels.GetChannelsRequest([t.InputChannel(66, access_hash=0)])
        assert await refusal(user, request) == (400, "CHANNEL_INVALID")
        [found] = (await bot(request)).chats
        peer = t.InputPeerChannel(66, found.access_hash)
        assert await bot(f.messages.SendMessageRequest(peer, "all", random_id=1))
