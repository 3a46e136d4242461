"""Updates of the Telegram sandbox: messages from users, and read messages."""

from typing import Any

import pytest
from telethon import events
from telethon.tl import functions as f
from telethon.tl import types as t

from tests.sandbox.telegram_clients import USER, TelegramSandbox, record, request_once, send
from tests.support.waiting import until


class TestUpdates:
    async def test_a_user_account_is_notified_that_messages_were_read(self, telegram: TelegramSandbox) -> None:
        client = await telegram.user()
        read: list[Any] = []
        client.add_event_handler(lambda event: record(read, event), events.Raw(t.UpdateReadHistoryOutbox))
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        sent = await client(send(access_hash=found.users[0].access_hash))
        assert telegram.server.mark_read(str(USER)) == 1
        await until(lambda: read)
        assert (read[0].peer.user_id, read[0].max_id) == (USER, sent.id)

    async def test_bots_and_accounts_without_messages_are_not_notified(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        await telegram.user()
        await client(send())
        assert telegram.server.mark_read(str(USER)) == 0

    @pytest.mark.parametrize("kind", ["bot", "user"])
    async def test_a_user_writes_to_the_account_and_gets_an_answer(self, telegram: TelegramSandbox, kind: str) -> None:
        client = await getattr(telegram, kind)()

        @client.on(events.NewMessage)  # type: ignore[untyped-decorator]
        async def answer(event: Any) -> None:
            await event.respond(f"you said {event.raw_text}")

        telegram.server.write(str(USER), "привет")
        await until(lambda: telegram.texts() == ["you said привет"])

    async def test_a_user_who_wrote_is_known_to_the_account(self, telegram: TelegramSandbox) -> None:
        client = await telegram.user()
        request = f.users.GetUsersRequest([t.InputUser(USER, 0)])
        assert isinstance((await request_once(client, request))[0], t.UserEmpty)
        telegram.server.write(str(USER), "привет")
        assert isinstance((await request_once(client, request))[0], t.User)

    async def test_a_user_writes_to_one_account_if_it_is_named(self, telegram: TelegramSandbox) -> None:
        received: list[tuple[int, str]] = []
        for token in ("1001:sandbox-token", "1002:sandbox-token"):
            client = await telegram.bot(token)

            @client.on(events.NewMessage)  # type: ignore[untyped-decorator]
            async def note(event: Any, account: int = int(token[:4])) -> None:
                received.append((account, event.raw_text))

        telegram.server.write(str(USER), "to one", account=1002)
        telegram.server.write(str(USER), "to all")
        await until(lambda: len(received) == 3)
        assert sorted(received) == [(1001, "to all"), (1002, "to all"), (1002, "to one")]

    async def test_missed_messages_are_returned_by_get_difference(self, telegram: TelegramSandbox) -> None:
        client = await telegram.user()
        state = await client(f.updates.GetStateRequest())
        received: list[str] = []
        client.add_event_handler(lambda event: record(received, event), events.NewMessage)
        await client.disconnect()
        telegram.server.write(str(USER), "while you were away")
        await client.connect()
        difference = await client(f.updates.GetDifferenceRequest(state.pts, state.date, qts=0))
        assert [message.message for message in difference.new_messages] == ["while you were away"]
        nothing = f.updates.GetDifferenceRequest(difference.state.pts, state.date, qts=0)
        assert isinstance(await client(nothing), t.updates.DifferenceEmpty)

    async def test_a_client_without_updates_receives_none(self, telegram: TelegramSandbox) -> None:
        quiet, loud = await telegram.bot(receive_updates=False), await telegram.bot()
        received: list[str] = []
        for name, client in (("quiet", quiet), ("loud", loud)):
            client.add_event_handler(lambda _, name=name: record(received, name), events.Raw(t.UpdateNewMessage))
        telegram.server.write(str(USER), "hello")
        await until(lambda: received)
        await quiet.get_me()
        assert received == ["loud"]
