"""Messages to the sandbox's Telegram: texts, peers, access hashes, and random ids that tell a repeat."""

import asyncio

import pytest
from telethon.tl import functions as f
from telethon.tl import types as t

from tests.sandbox.telegram_clients import PERSON, Place, asked, refusal, send

pytestmark = pytest.mark.row("D-43")


class TestSending:
    async def test_a_message_reaches_the_inbox_with_its_number_and_random_id(self, place: Place) -> None:
        client = await place.bot()
        answer = await client(send("Моей пары сегодня не будет", random_id=-77))
        assert isinstance(answer, t.UpdateShortSentMessage)
        [message] = place.world.inbox("telegram")
        assert (message.address, message.text, message.random_id) == (
            str(PERSON),
            "Моей пары сегодня не будет",
            -77,
        )
        assert message.reference == str(answer.id)
        assert place.world.counted("telegram", "sendMessage") == 1

    async def test_telethons_own_send_message_works(self, place: Place) -> None:
        client = await place.bot()
        message = await client.send_message(PERSON, "by name")
        assert place.world.inbox()[0].reference == str(message.id)

    async def test_hundreds_at_once_travel_in_containers_and_all_arrive_once(self, place: Place) -> None:
        client = await place.bot()
        answers = await asyncio.gather(*(client(send(str(n), to=n, random_id=n)) for n in range(1, 501)))
        assert len({answer.id for answer in answers}) == 500
        assert sorted(int(message.text) for message in place.world.inbox()) == list(range(1, 501))

    async def test_telethon_without_updates_is_served(self, place: Place) -> None:
        client = await place.bot(receive_updates=False)
        await client(send("quiet"))
        assert place.texts() == ["quiet"]

    async def test_long_text_travels_compressed(self, place: Place) -> None:
        client = await place.bot()
        text = ("строка " * 600)[:4096]
        await client(send(text))
        assert place.texts() == [text]

    @pytest.mark.parametrize("text", ["x" * 4096, "я" * 4096, "🙂" * 2048, "\u0000", "{[\"\\n\u2028]}'<b>"])
    async def test_text_of_4096_units_and_any_letters_arrive_as_they_are(self, place: Place, text: str) -> None:
        await (await place.bot())(send(text))
        assert place.texts() == [text]

    @pytest.mark.parametrize("text", ["x" * 4097, "🙂" * 2048 + "x", "🙂" * 2049])
    async def test_more_than_4096_utf16_units_are_too_long(self, place: Place, text: str) -> None:
        client = await place.bot()
        assert await refusal(client, send(text)) == (400, "MESSAGE_TOO_LONG")
        assert place.texts() == []

    @pytest.mark.parametrize("text", ["", " \n"])
    async def test_an_empty_message_is_refused(self, place: Place, text: str) -> None:
        assert await refusal(await place.bot(), send(text)) == (400, "MESSAGE_EMPTY")

    async def test_a_group_and_a_channel_answer_with_the_whole_message(self, place: Place) -> None:
        client = await place.bot()
        for peer, address in ((t.InputPeerChat(55), "-55"), (t.InputPeerChannel(66, 0), "-10066")):
            answer = await asked(client, f.messages.SendMessageRequest(peer, "all", random_id=9))
            named, news = answer.updates
            assert (named.random_id, news.message.message, news.message.id) == (9, "all", named.id)
            assert place.world.inbox("telegram", address)[0].reference == str(named.id)

    async def test_one_may_write_to_oneself(self, place: Place) -> None:
        client = await place.bot()
        await asked(client, f.messages.SendMessageRequest(t.InputPeerSelf(), "note", random_id=1))
        assert place.texts(4242) == ["note"]

    @pytest.mark.parametrize("user", [0, -5, 2**50])
    async def test_an_id_that_nobody_can_have_is_refused(self, place: Place, user: int) -> None:
        assert await refusal(await place.bot(), send(to=user)) == (400, "PEER_ID_INVALID")

    async def test_a_user_needs_the_right_access_hash(self, place: Place) -> None:
        client = await place.user()
        assert await refusal(client, send(access_hash=0)) == (400, "PEER_ID_INVALID")
        assert await refusal(client, send(access_hash=12345)) == (400, "PEER_ID_INVALID")
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        assert await client(send(access_hash=found.users[0].access_hash))

    async def test_an_access_hash_is_worth_nothing_to_another_account(self, place: Place) -> None:
        one, other = await place.user("+79990000077"), await place.user("+79990000078")
        found = await one(f.contacts.ResolvePhoneRequest("+79990100001"))
        request = send(access_hash=found.users[0].access_hash)
        assert await refusal(other, request) == (400, "PEER_ID_INVALID")

    async def test_an_access_hash_outlives_a_restart(self, place: Place) -> None:
        client = await place.user()
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        await place.restart()
        assert await asked(client, send(access_hash=found.users[0].access_hash))


class TestRandomIds:
    async def test_a_repeat_has_the_same_number_and_is_not_received_again(self, place: Place) -> None:
        client = await place.bot()
        first, again = await client(send(random_id=7)), await client(send(random_id=7))
        assert first.id == again.id
        assert len(place.texts()) == 1

    async def test_repeats_in_one_container_are_one_message(self, place: Place) -> None:
        client = await place.bot()
        answers = await asyncio.gather(*(client(send(random_id=7)) for _ in range(20)))
        assert len({answer.id for answer in answers}) == 1
        assert len(place.texts()) == 1

    async def test_the_same_id_for_another_person_is_another_message(self, place: Place) -> None:
        client = await place.bot()
        first, other = await client(send(random_id=7)), await client(send(random_id=7, to=5))
        assert first.id != other.id
        assert len(place.world.inbox()) == 2

    async def test_the_same_id_of_another_account_is_another_message(self, place: Place) -> None:
        for token in ("1001:sandbox-token", "1002:sandbox-token"):
            await (await place.bot(token))(send(random_id=7))
        assert len(place.texts()) == 2

    async def test_a_group_repeats_its_whole_answer(self, place: Place) -> None:
        client = await place.bot()
        request = f.messages.SendMessageRequest(t.InputPeerChat(55), "all", random_id=9)
        first, again = await asked(client, request), await asked(client, request)
        assert first.updates[0].id == again.updates[0].id
        assert place.texts(-55) == ["all"]

    async def test_no_random_id_is_refused(self, place: Place) -> None:
        assert await refusal(await place.bot(), send(random_id=0)) == (400, "RANDOM_ID_EMPTY")
