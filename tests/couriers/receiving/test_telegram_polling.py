"""Polling: one process polls, a standby takes over; what Telegram repeats is answered once; faults are waited out."""

import asyncio
import logging
import time
from datetime import UTC, datetime

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from cli.command import CommandFailed
from core.errors import SetupError
from core.queue import QueueClient
from couriers.inbound import events_ingress
from couriers.telegram_bot import CHANNEL
from couriers.telegram_bot.events import read_arrival
from couriers.telegram_bot.receive import TelegramWebhook
from tests.scenarios.teacher.chat import STRANGER, TEACHER, School, english
from tests.scenarios.teacher.conftest import bot_api, idle_school, school
from tests.support.receiving import receiving_bot, running
from tests.support.stack import TENANT, Stack
from tests.support.waiting import stays, until

__all__ = ["bot_api", "idle_school", "school"]


async def test_of_two_processes_one_polls_and_the_other_takes_over(idle_school: School) -> None:
    school = idle_school
    async with school.running():
        async with school.running():
            assert await school.answer("/help") == english("help_teacher")
            await stays(lambda: len(school.texts()) == 1)
            assert school.bot_api.state.counter("telegram-bot", "getUpdates") <= 4
        assert await school.answer("/help") == english("help_teacher")
    assert len(school.texts()) == 2


async def test_an_update_that_was_put_and_not_confirmed_is_answered_once(idle_school: School) -> None:
    school = idle_school
    async with school.running():
        school.bot_api.inject_fault("502", method="getUpdates")
        await school.answer("/help")
    school.write("/help")
    async with school.running():
        await until(lambda: len(school.texts()) == 2)
        await stays(lambda: len(school.texts()) == 2)


@pytest.mark.parametrize("fault", ["502"])
async def test_a_fault_of_the_bot_api_is_waited_out(
    idle_school: School, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    school = idle_school
    caplog.set_level(logging.DEBUG)
    school.bot_api.inject_fault(fault, method="getUpdates")
    school.write("/help")
    async with school.running():
        await school.shows(english("help_teacher"))
    assert school.bot_api.server.token not in caplog.text


async def test_updates_without_a_number_are_waited_out(idle_school: School, caplog: pytest.LogCaptureFixture) -> None:
    results = {"getMe": {"id": 4343}, "deleteWebhook": True, "getUpdates": [{"message": {}}]}

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"ok": True, "result": results[request.match_info["method"]]})

    app = web.Application()
    app.router.add_post("/{bot}/{method}", answer)
    async with TestServer(app) as api:
        async with running(receiving_bot("4343:x", f"http://127.0.0.1:{api.port}", idle_school.core)):
            await until(lambda: "no updates (Unreadable)" in caplog.text)


async def test_after_an_empty_answer_no_offset_hides_an_update_with_a_lower_number(idle_school: School) -> None:
    """After a week without updates Telegram chooses the next number at random."""
    answers = [[{"update_id": 1000}], [], [{"update_id": 5}], []]
    offsets: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        if request.match_info["method"] != "getUpdates":
            return web.json_response({"ok": True, "result": {"id": 4343}})
        if len(offsets) == len(answers):
            await asyncio.Event().wait()
        offsets.append(str((await request.post()).get("offset")))
        return web.json_response({"ok": True, "result": answers[len(offsets) - 1]})

    app = web.Application()
    app.router.add_post("/{bot}/{method}", answer)
    async with TestServer(app) as api:
        async with running(receiving_bot("4343:x", f"http://127.0.0.1:{api.port}", idle_school.core)):
            await until(lambda: len(offsets) == len(answers))
    assert offsets == ["None", "1001", "None", "6"]


async def test_after_a_conflict_it_polls_again_in_two_seconds(school: School, caplog: pytest.LogCaptureFixture) -> None:
    """At once, two programs would end each other's polls without end."""
    await until(lambda: school.bot_api.state.counter("telegram-bot", "getUpdates") >= 2)
    began = time.monotonic()
    await school.bot_api.bot.get_updates(timeout=0)  # the other program
    await school.answer("/help")
    assert "another program polls as this bot" in caplog.text
    assert time.monotonic() - began >= 2


async def test_a_429_is_waited_out_and_the_answer_is_sent_once(school: School) -> None:
    school.bot_api.inject_fault("429", 1, method="sendMessage")
    assert await school.answer("/help") == english("help_teacher")
    assert len(school.texts()) == 1


async def test_a_person_who_has_blocked_the_bot_holds_up_nothing(school: School) -> None:
    school.bot_api.inject_fault("blocked", address=str(STRANGER), method="sendMessage")
    school.write("/help", STRANGER)
    assert await school.answer("/help") == english("help_teacher")


@pytest.mark.parametrize(
    "content",
    [
        {"channel_post": {"message_id": 1, "date": 1, "chat": {"id": -100, "type": "channel"}, "text": "news"}},
        {"message": {"message_id": 1, "date": 1, "chat": {"id": 100001, "type": "private"}, "text": "nobody"}},
        {"some_new_kind": {"id": 1}},
    ],
)  # fmt: skip
async def test_an_update_without_a_sender_or_of_another_kind_is_not_answered(
    stack: Stack, content: dict[str, object]
) -> None:
    ingress = events_ingress(stack.store, QueueClient(stack.store), TENANT)[CHANNEL]
    assert not await ingress.put({"update_id": 1, **content})


async def test_an_update_with_half_a_surrogate_pair_is_skipped_with_one_log_line(
    school: School, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    school.write("half \ud83d")
    school.bot_api.server.people.set_person(STRANGER, name="\udc00 Half")
    school.write("/help", STRANGER)
    assert await school.answer("/help") == english("help_teacher")
    assert len([line for line in caplog.messages if "is ignored: EVENT_MALFORMED" in line]) == 2
    assert len([line for line in caplog.messages if "is ignored" in line]) == 2
    assert school.texts(STRANGER) == []


@pytest.mark.parametrize("token", ["4343:wrong", "no token"])
async def test_a_wrong_token_is_a_mistake_of_the_setup(idle_school: School, token: str) -> None:
    server = idle_school.bot_api.server
    with pytest.raises((SetupError, CommandFailed), match="ADA_BOT_TOKEN") as error:
        await receiving_bot(token, server.url, idle_school.core).run(asyncio.Event(), lambda **_: None)
    assert token not in str(error.value)


async def test_updates_come_by_webhook_with_its_secret(idle_school: School) -> None:
    school = idle_school
    received: list[tuple[str, object]] = []

    async def handle(request: web.Request) -> web.Response:
        received.append((request.headers["X-Telegram-Bot-Api-Secret-Token"], await request.json()))
        return web.Response(text="ok")

    app = web.Application()
    app.router.add_post("/v1/inbound/telegram", handle)
    async with TestServer(app) as api:
        webhook = {
            "ADA_BOT_WEBHOOK_URL": f"http://127.0.0.1:{api.port}/",
            "ADA_INBOUND_TELEGRAM_SECRET": "a-secret",
        }
        server = school.bot_api.server
        async with running(receiving_bot(server.token, server.url, school.core, **webhook)):
            school.write("/help")
            await until(lambda: received)
    secret, update = received[0]
    assert secret == "a-secret"
    assert isinstance(update, dict)
    arrival = read_arrival(update, datetime.now(UTC))
    assert arrival is not None
    assert (arrival.event["user_id"], arrival.event["event_text"]) == (TEACHER, "/help")


def test_a_webhook_needs_a_secret_that_telegram_accepts() -> None:
    with pytest.raises(SetupError, match="ADA_INBOUND_TELEGRAM_SECRET"):
        TelegramWebhook("https://ada.example.org", "")
