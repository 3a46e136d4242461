"""A teacher plays the whole dialog with Ada's bot in a browser, on the inbox page."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.directory.linking import Linking
from core.model.people import UserChange
from couriers.email import LinkCodeMailer, Mailer, MailServer
from couriers.sending.interface import Message, Outcome
from couriers.sms import courier as sms
from sandbox.sandbox import Sandbox
from tests.sandbox.bot_api_clients import BotApi, session
from tests.sandbox.page_person import PersonAtThePage, page
from tests.scenarios.teacher.chat import School, open_school
from tests.support.browser import Browser
from tests.support.stack import TENANT, Stack
from tests.support.whole_aiogram import Bot

__all__ = ["page"]

BOT = "telegram-bot"
LOG = f"#chat-{BOT} .log"


@pytest.fixture
async def school(stack: Stack, sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[School]:
    """The bot at the sandbox. The teacher is not linked yet; codes are mailed, and SMS sent, through the sandbox."""
    bot = Bot(sandbox.bot_api.token, session=session(sandbox.bot_api))
    mailer = Mailer(MailServer.parse(sandbox.mail.url))
    opened = await open_school(stack, BotApi(sandbox.state, sandbox.bot_api, bot), tmp_path / "courier")
    directory = opened.directory
    opened.linking = Linking(stack.store, directory, LinkCodeMailer(mailer))
    await directory.users.remove_contact(TENANT, 1, BOT, "100001")
    await directory.users.update(TENANT, 1, UserChange(email="teacher@sandbox.example"))
    courier = await sms.open(sms.Settings(sandbox.sms.url, "ada", "sandbox", "Ada"), tmp_path)

    async def send(message: Message) -> Outcome:
        (outcome,) = await courier.attempt([message])
        return outcome

    opened.sms.respond = send
    async with opened.running():
        yield opened
    await courier.close()
    await mailer.close()
    await bot.session.close()


async def test_a_teacher_links_the_chat_selects_a_group_writes_confirms_and_sees_the_status(
    school: School, page: PersonAtThePage, browser: Browser
) -> None:
    await page.open()
    await page.write(BOT, "/start")
    await page.sees("write me the e-mail address", LOG)
    await page.write(BOT, "teacher@sandbox.example")
    await page.sees("I mailed a code", LOG)
    await page.write(BOT, await mailed_code(page))
    await page.sees("Done, Анна", LOG)
    await page.write(BOT, "/select")
    await page.press("ИВТ-101", LOG)
    await page.sees("✅ ИВТ-101", LOG)
    await page.press("ИВТ-102", LOG)
    await page.sees("Selected: ИВТ-101, ИВТ-102", LOG)
    await page.press("✅ ИВТ-102", LOG)  # a toggle takes it off again
    await page.sees_no("✅ ИВТ-102", LOG)
    await page.press("Done", LOG)
    await page.sees("Write the text.", LOG)
    await page.write(BOT, "Завтра нет пары")
    await page.press("Now", LOG)
    await page.sees("of these without a contact: 1", LOG)
    await page.press("Send", LOG)
    await page.sees("Everybody who can be reached was reached", LOG)
    await page.open("#all")
    await page.press("+79990000002", "#messages")
    await page.sees_in_chat("sms", "Завтра нет пары")


async def mailed_code(page: PersonAtThePage) -> str:
    """Read the code in the mailbox beside the chat."""
    await page.sees_in_chat("email", "teacher@sandbox.example")
    await page.browser.wait_for("document.querySelector('#chat-email .message') !== null")
    found = re.search(r"\b[2-9A-HJKMNP-Z]{6}\b", await page.browser.text("#chat-email .log .text"))
    assert found is not None
    return found[0]
