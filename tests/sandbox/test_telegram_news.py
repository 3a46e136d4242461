"""What the sandbox's Telegram tells of its own accord: messages of people, and that they have read."""

from typing import Any

import pytest
from telethon import events
from telethon.tl import functions as f
from telethon.tl import types as t

from tests.sandbox.telegram_clients import PERSON, Place, asked, hear, send
from tests.support.waiting import until

pytestmark = pytest.mark.row("D-43")


class TestNews:
    async def test_a_user_learns_that_a_person_read_everything(self, place: Place) -> None:
        client = await place.user()
        read: list[Any] = []
        client.add_event_handler(lambda event: hear(read, event), events.Raw(t.UpdateReadHistoryOutbox))
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        sent = await client(send(access_hash=found.users[0].access_hash))
        assert place.server.mark_read(str(PERSON)) == 1
        await until(lambda: read)
        assert (read[0].peer.user_id, read[0].max_id) == (PERSON, sent.id)

    async def test_bots_never_learn_it_and_nobody_learns_what_he_did_not_send(self, place: Place) -> None:
        client = await place.bot()
        await place.user()
        await client(send())
        assert place.server.mark_read(str(PERSON)) == 0

    @pytest.mark.parametrize("kind", ["bot", "user"])
    async def test_a_person_writes_to_the_account_and_is_answered(self, place: Place, kind: str) -> None:
        client = await getattr(place, kind)()

        @client.on(events.NewMessage)  # type: ignore[untyped-decorator]
        async def answer(event: Any) -> None:
            await event.respond(f"you said {event.raw_text}")

        place.server.write(str(PERSON), "привет")
        await until(lambda: place.texts() == ["you said привет"])

    async def test_a_person_who_wrote_is_known_to_the_account(self, place: Place) -> None:
        client = await place.user()
        request = f.users.GetUsersRequest([t.InputUser(PERSON, 0)])
        assert isinstance((await asked(client, request))[0], t.UserEmpty)
        place.server.write(str(PERSON), "привет")
        assert isinstance((await asked(client, request))[0], t.User)

    async def test_a_person_writes_to_one_account_only_when_it_is_named(self, place: Place) -> None:
        heard: list[tuple[int, str]] = []
        for token in ("1001:sandbox-token", "1002:sandbox-token"):
            client = await place.bot(token)

            @client.on(events.NewMessage)  # type: ignore[untyped-decorator]
            async def note(event: Any, account: int = int(token[:4])) -> None:
                heard.append((account, event.raw_text))

        place.server.write(str(PERSON), "to one", account=1002)
        place.server.write(str(PERSON), "to all")
        await until(lambda: len(heard) == 3)
        assert sorted(heard) == [(1001, "to all"), (1002, "to all"), (1002, "to one")]

    async def test_what_was_missed_while_away_is_fetched_by_the_difference(self, place: Place) -> None:
        client = await place.user()
        state = await client(f.updates.GetStateRequest())
        heard: list[str] = []
        client.add_event_handler(lambda event: hear(heard, event), events.NewMessage)
        await client.disconnect()
        place.server.write(str(PERSON), "while you were away")
        await client.connect()
        difference = await client(f.updates.GetDifferenceRequest(state.pts, state.date, qts=0))
        assert [message.message for message in difference.new_messages] == ["while you were away"]
        nothing = f.updates.GetDifferenceRequest(difference.state.pts, state.date, qts=0)
        assert isinstance(await client(nothing), t.updates.DifferenceEmpty)

    async def test_a_client_that_wants_no_updates_gets_none(self, place: Place) -> None:
        quiet, loud = await place.bot(receive_updates=False), await place.bot()
        heard: list[str] = []
        for name, client in (("quiet", quiet), ("loud", loud)):
            client.add_event_handler(lambda _, who=name: hear(heard, who), events.Raw(t.UpdateNewMessage))
        place.server.write(str(PERSON), "hello")
        await until(lambda: heard)
        await quiet.get_me()
        assert heard == ["loud"]
