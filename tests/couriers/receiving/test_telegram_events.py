"""With scenarios the Telegram bot puts events: what people do in private chats and groups, once, also over restarts."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.command import OPERATOR_NEEDED, CommandFailed
from core.queue import QueueClient
from core.updates.bot_calls import BotCalls
from core.updates.events import MAX_BYTES, TUBE, decode
from core.updates.ingress import WINDOW
from couriers.telegram_bot import CHANNEL
from sandbox.bot_api.state.parameters import Upload
from tests.sandbox.bot_api_clients import GROUP
from tests.scenarios.teacher.chat import STUDENT, TEACHER, School
from tests.scenarios.teacher.conftest import bot_api, idle_school, school
from tests.support.receiving import receiving_bot, running, scenarios
from tests.support.stack import TENANT
from tests.support.waiting import stays, until

PHOTO = Upload("a.jpg", "image/jpeg", b"\xff\xd8")
PEOPLE = {"title": "ИВТ-101", "creator": TEACHER}

__all__ = ["bot_api", "idle_school", "school"]


@dataclass
class Chats:
    """The bot's chats, and the events that were put."""

    school: School
    folder: Path
    seen: list[dict[str, Any]] = field(default_factory=list)

    @property
    def people(self) -> Any:
        return self.school.bot_api.server.people

    @property
    def calls(self) -> BotCalls:
        return BotCalls(QueueClient(self.school.stack.store), TENANT, CHANNEL)

    @property
    def joining(self) -> Any:
        return self.school.bot_api.server.joining

    @asynccontextmanager
    async def running(self, max_age: timedelta = timedelta(hours=1)) -> AsyncIterator[None]:
        """A process of the bot."""
        server = self.school.bot_api.server
        settings = scenarios(self.folder, max_age)
        async with running(receiving_bot(server.token, server.url, self.school.core, **settings)):
            yield

    async def events(self, count: int) -> list[dict[str, Any]]:
        """Wait until so many events were put in all, and return them."""
        await until(lambda: self._take(count))
        return self.seen

    async def _take(self, count: int) -> bool:
        self.seen += [dict(decode(body)) for body in await self.school.stack.finish_all(TUBE)]
        return len(self.seen) >= count

    async def has_no_more(self) -> bool:
        before = len(self.seen)
        return await self._take(before) and len(self.seen) == before

    async def photo(self, number: int) -> None:
        """A photo of the album."""
        self.people.send_file(TEACHER, "photo", PHOTO, media_group_id="77", caption=f"photo {number}")

    async def polled(self, times: int) -> None:
        """Wait until the bot has asked for updates so often."""
        state = self.school.bot_api.state
        await until(lambda: state.counter("telegram-bot", "getUpdates") >= times)


@pytest.fixture
def chats(idle_school: School, tmp_path: Path) -> Chats:
    return Chats(idle_school, tmp_path / "bot")


async def test_what_is_written_privately_and_in_a_group_is_an_event(chats: Chats) -> None:
    async with chats.running():
        chats.people.write(TEACHER, "привет")
        chats.people.write(TEACHER, "/start", GROUP)
        private, group = await chats.events(2)
    assert (private["event_text"], private["chat_type"], private["chat_id"]) == ("привет", "private", TEACHER)
    assert (group["event_text"], group["chat_type"], group["chat_id"]) == ("/start", "supergroup", GROUP)
    assert private["user_id"] == group["user_id"] == TEACHER


async def test_an_update_that_telegram_repeats_is_one_event(chats: Chats) -> None:
    async with chats.running():
        chats.school.bot_api.inject_fault("502", method="getUpdates")
        chats.people.write(TEACHER, "one")
        await chats.events(1)
    async with chats.running():  # what the process before has not confirmed comes again
        chats.people.write(TEACHER, "two")
        events = await chats.events(2)
    assert [event["event_text"] for event in events] == ["one", "two"]


async def test_a_pressed_button_is_an_event_and_no_longer_waits(chats: Chats) -> None:
    server = chats.school.bot_api
    buttons = {"inline_keyboard": [[{"text": "Да", "callback_data": "да"}]]}
    message = await server.bot.send_message(TEACHER, "?", reply_markup=buttons)  # type: ignore[arg-type]
    async with chats.running():
        query = chats.people.press(TEACHER, message.message_id, "Да")
        (event,) = await chats.events(1)
        await chats.calls.answer_press(event)
        await until(lambda: chats.people.answer(query) is not None)
    assert (event["kind"], event["callback_data"], event["message_id"]) == ("callback", "да", message.message_id)


async def test_a_press_is_acknowledged_after_a_fault_of_the_network(
    chats: Chats, caplog: pytest.LogCaptureFixture
) -> None:
    server = chats.school.bot_api
    buttons = {"inline_keyboard": [[{"text": "Да", "callback_data": "да"}]]}
    message = await server.bot.send_message(TEACHER, "?", reply_markup=buttons)  # type: ignore[arg-type]
    server.inject_fault("disconnect_before", method="answerCallbackQuery")
    async with chats.running():
        query = chats.people.press(TEACHER, message.message_id, "Да")
        (event,) = await chats.events(1)
        await chats.calls.answer_press(event)
        await until(lambda: chats.people.answer(query) is not None)
    assert server.state.counter("telegram-bot", "answerCallbackQuery") == 2
    assert "Traceback" not in caplog.text


async def test_the_mark_that_the_bot_is_writing_is_shown_and_a_refused_one_is_no_fault(chats: Chats) -> None:
    state = chats.school.bot_api.state
    async with chats.running():
        for chat in (-1, TEACHER):
            await chats.calls.show_typing({"channel": CHANNEL, "user_id": TEACHER, "chat_id": chat})
        await until(lambda: state.counter("telegram-bot", "sendChatAction") == 2)
        chats.people.write(TEACHER, "later")
        assert len(await chats.events(1)) == 1
    assert await chats.school.stack.finish_all(f"bot_calls.{CHANNEL}") == []


async def test_an_album_is_one_event(chats: Chats) -> None:
    async with chats.running():
        for number in range(5):
            await chats.photo(number)
        chats.people.write(STUDENT, "later")
        await chats.events(2)
    (album,) = [event for event in chats.seen if event["user_id"] == TEACHER]
    assert len({file["file_id"] for file in album["attachments"]}) == 5
    assert album["event_text"] == "photo 0"


async def test_an_album_is_one_event_if_the_bot_is_restarted_between_its_photos(chats: Chats) -> None:
    async with chats.running():
        await chats.polled(2)  # the second call waits for updates
        await chats.photo(1)
        await chats.polled(3)
    await chats.photo(2)
    chats.school.stack.advance_clock(2 * WINDOW)
    chats.school.bot_api.inject_fault("502", method="getUpdates")  # so that the task of photo 1 could come first
    async with chats.running():
        (album,) = await chats.events(1)
    assert len(album["attachments"]) == 2
    assert await chats.school.stack.finish_all(TUBE) == []


async def test_an_album_is_one_event_if_another_process_takes_over_between_its_photos(chats: Chats) -> None:
    async with chats.running():
        async with chats.running():
            await chats.polled(2)
            await chats.photo(1)
            await chats.polled(3)
        await chats.photo(2)
        (album,) = await chats.events(1)
    assert len(album["attachments"]) == 2


async def test_a_join_by_a_link_is_one_event_with_the_link(chats: Chats) -> None:
    chats.joining.set_up(GROUP, **PEOPLE)
    link = (await chats.school.bot_api.bot.create_chat_invite_link(GROUP)).invite_link
    async with chats.running():
        await chats.polled(2)  # then Telegram knows that the bot wants updates of members
        chats.joining.join(STUDENT, link=link)
        (event,) = await chats.events(1)
        await stays(chats.has_no_more, during=1.2)  # longer than the window
    assert (event["kind"], event["user_id"], event["invite_link"]) == ("new_member", STUDENT, link)
    assert event["joined_user_ids"] == [STUDENT]
    assert event["initiator_user_id"] == STUDENT


async def test_a_message_much_older_than_the_start_is_ignored(chats: Chats, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    chats.people.send_file(TEACHER, "document", PHOTO, date=1_763_712_000, caption="old")
    chats.people.write(TEACHER, "new")
    async with chats.running():
        (event,) = await chats.events(1)
    assert event["event_text"] == "new"
    assert "is ignored: it is of 2025-11-21" in caplog.text


async def test_a_forward_and_a_reply_are_known_as_such(chats: Chats) -> None:
    first = chats.people.write(STUDENT, "придёте?", GROUP)
    async with chats.running():
        chats.people.forward(TEACHER, "смотри", STUDENT)
        chats.people.reply(TEACHER, first, "да", GROUP)
        events = await chats.events(3)
    forward = next(event for event in events if event["event_text"] == "смотри")
    reply = next(event for event in events if event["event_text"] == "да")
    assert forward["is_forward"] is True
    assert (reply["reply_message_text"], reply["reply_user_id"]) == ("придёте?", STUDENT)


async def test_what_telegram_reports_and_nobody_did_is_no_event(chats: Chats) -> None:
    async with chats.running():
        chats.people.block(TEACHER)
        chats.people.unblock(TEACHER)
        chats.people.write(TEACHER, "hello")
        (event,) = await chats.events(1)
    assert event["event_text"] == "hello"


async def test_an_event_that_cannot_be_used_is_reported_and_the_next_one_goes_on(
    chats: Chats, caplog: pytest.LogCaptureFixture
) -> None:
    async with chats.running():
        chats.people.send_file(TEACHER, "document", PHOTO, caption="x" * MAX_BYTES)
        chats.people.send_file(TEACHER, "photo", PHOTO, caption="x" * MAX_BYTES, media_group_id="9")
        chats.people.write(TEACHER, "hello")
        (event,) = await chats.events(1)
    assert event["event_text"] == "hello"
    assert caplog.text.count("EVENT_TOO_LARGE") == 2


async def test_an_update_with_half_a_surrogate_pair_is_skipped_with_one_log_line(
    chats: Chats, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with chats.running():
        chats.people.write(TEACHER, "half \ud83d")
        chats.people.send_file(TEACHER, "photo", PHOTO, caption="half \ud83d", media_group_id="9")
        chats.people.send_file(TEACHER, "photo", PHOTO, media_group_id="half \ud83d")
        chats.people.write(TEACHER, "hello")
        (event,) = await chats.events(1)
    assert event["event_text"] == "hello"
    assert len([line for line in caplog.messages if "is ignored: EVENT_MALFORMED" in line]) == 3
    assert len([line for line in caplog.messages if "is ignored" in line]) == 3


async def test_a_revoked_token_ends_the_process_with_what_to_do(chats: Chats) -> None:
    server = chats.school.bot_api.server
    chats.school.bot_api.inject_fault("unauthorized", method="getUpdates")
    bot = receiving_bot(server.token, server.url, chats.school.core, **scenarios(chats.folder))
    with pytest.raises(CommandFailed, match="ADA_BOT_TOKEN") as refused:
        await asyncio.wait_for(bot.run(asyncio.Event(), lambda **_: None), 30)
    assert refused.value.code == OPERATOR_NEEDED
    assert server.token not in str(refused.value)
