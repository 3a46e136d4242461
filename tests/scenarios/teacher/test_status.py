"""After sending, the message in the chat shows what happens (D-17), and its buttons cancel, retry and list."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest

from core.deliveries.channels import ChannelFacts, Channels
from core.model.delivery import Quota
from core.model.hours import QuietHours, TenantQuietHours
from core.model.people import UserChange
from core.model.states import Reason
from couriers.sending.interface import Message, Outcome, Rejected, Sent
from tests.sandbox.bot_api_clients import BotApi
from tests.scenarios.teacher.chat import TEACHER, School, english, labels, open_school
from tests.support.moments import AHEAD
from tests.support.stack import TENANT, Stack
from tests.support.waiting import until


class Provider:
    """Refuses the messages to these addresses."""

    def __init__(self, *refused: str) -> None:
        self.refused = set(refused)

    def respond(self, message: Message) -> Outcome:
        if message.address in self.refused:
            return Rejected(Reason.BLOCKED, "blocked")
        return Sent("1")


async def without_students(school: School) -> Provider:
    """Let no student be reached."""
    await school.directory.users.update(TENANT, 2, UserChange(contacts={"sms": ["+79990000002"]}))
    provider = Provider("+79990000002", "+79990000003")
    school.sms.respond = provider.respond
    return provider


async def schedule(school: School) -> None:
    """Send for a time far away."""
    await school.select("ИВТ-101")
    await school.notice("Done")
    await school.answer("hello")
    await school.answer(AHEAD)
    await school.notice("Send")


async def test_a_scheduled_delivery_shows_its_time_and_can_be_cancelled(school: School) -> None:
    await schedule(school)
    shown = await school.shows(english("status_scheduled", time=AHEAD))
    assert labels(shown) == [english("button_cancel_delivery")]
    await school.notice(english("button_cancel_delivery"), message=shown)
    await school.shows(english("status_cancelled"))
    assert school.sms.attempted == []


async def test_everybody_reached_is_claimed_only_if_nobody_is_without_a_contact(school: School) -> None:
    await school.send("hello", "ИВТ-102")
    assert "People: 1, reached: 1" in (await school.shows(english("status_everybody_reached")))["text"]
    await school.send("hello", "ИВТ-101")
    await school.shows(english("status_all_reached"))
    assert english("status_everybody_reached") not in school.texts()[-1]


async def test_everybody_reached_is_shown_with_those_who_have_no_contact(school: School) -> None:
    await school.send("hello")
    await school.shows(english("status_all_reached"))
    shown = await school.shows_button(english("button_missed"))
    assert "People: 3, reached: 2" in shown["text"]
    before = len(school.messages())
    await school.notice(english("button_missed"))
    await until(lambda: len(school.messages()) > before)
    assert school.texts()[-1] == f"Not reached: 1\nГлеб – {english('why_no_contact')}"


async def test_some_reached_while_a_courier_has_not_reported_is_shown(school: School) -> None:
    await Channels(school.stack.store).register("vk", ChannelFacts(100))
    await school.directory.users.update(TENANT, 3, UserChange(contacts={"vk": ["200003"]}))
    await school.core.channels.read()  # otherwise the bot sees the channel up to a second later
    await school.send("hello")
    await school.shows(english("status_partly"))


async def test_nothing_worked_is_shown_and_the_failed_are_tried_again(school: School) -> None:
    provider = await without_students(school)
    await school.send("hello")
    await school.shows(english("status_nothing_worked"))
    shown = await school.shows_button(english("button_retry"))
    provider.refused = set()
    assert await school.notice(english("button_retry"), message=shown) == english("retry_begun", count=2)
    await school.shows(english("status_all_reached"))


async def test_some_reached_and_others_not_is_shown_with_who_was_not(school: School) -> None:
    school.sms.respond = Provider("+79990000003").respond
    await school.send("hello")
    await school.shows(english("status_some_reached"))
    await school.shows_button(english("button_missed"))
    before = len(school.messages())
    await school.notice(english("button_missed"))
    await until(lambda: len(school.messages()) > before)
    assert f"Вера – {english('why_blocked')}" in school.texts()[-1]


async def test_nobody_with_a_contact_is_shown_as_it_should_be(school: School) -> None:
    for user in (2, 3):
        await school.directory.users.update(TENANT, user, UserChange(contacts={}))
    await school.send("hello")
    await school.shows(english("status_nobody_to_reach"))


async def test_retry_pressed_twice_sends_once_more(school: School) -> None:
    await without_students(school)
    await school.send("hello")
    retry = english("button_retry")
    await school.shows(english("status_nothing_worked"))
    shown = await school.shows_button(retry)
    presses = [school.press(retry, message=shown) for _ in range(2)]
    notices = [await school.notice_of(one) for one in presses]
    assert notices[0] == english("retry_begun", count=2)
    assert len(school.sms.attempted) <= 6


async def test_the_status_of_another_person_is_not_reachable(school: School) -> None:
    await schedule(school)
    shown = await school.shows(english("status_scheduled", time=AHEAD))
    await school.directory.users.remove_contact(TENANT, 1, "telegram-bot", str(TEACHER))
    await school.directory.users.update(
        TENANT, 2, UserChange(role="trainer", contacts={"telegram-bot": [str(TEACHER)]})
    )
    notice = await school.notice(english("button_cancel_delivery"), message=shown)
    assert notice == english("status_history_not_found")


async def test_the_fifth_message_is_refused_with_the_remaining_time(school: School) -> None:
    for number in range(4):
        await school.send(f"message {number}")
    await school.select("ИВТ-101")
    await school.notice("Done")
    await school.answer("message 5")
    await school.notice("Now")
    shown = await school.shows("Not sent: you have sent as many messages as you may")
    assert "possible in 1 d." in shown["text"] or "possible in 23 h" in shown["text"]
    assert len(school.sms.attempted) == 8


@pytest.fixture
async def night_school(stack: Stack, bot_api: BotApi, tmp_path: Path) -> AsyncIterator[School]:
    now = datetime.now(UTC).replace(hour=3) - timedelta(days=1)  # never to come: replies would wait for it
    quiet = TenantQuietHours(QuietHours(time(0), time(7)))
    school = await open_school(stack, bot_api, tmp_path, {"trainer": Quota(4, timedelta(days=1))}, quiet, lambda: now)
    async with school.running():
        yield school


async def test_in_quiet_hours_the_morning_time_is_announced(night_school: School) -> None:
    school = night_school
    await school.select("ИВТ-101")
    await school.notice("Done")
    await school.answer("hello")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    await school.answer(f"{tomorrow:%d.%m.%Y} 03:00")
    await school.notice("Send")
    shown = await school.shows(english("status_moved"))
    assert f"{tomorrow:%d.%m.%Y} 07:0" in shown["text"]
