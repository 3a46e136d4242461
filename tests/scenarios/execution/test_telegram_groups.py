"""Groups and states from a person's update in Telegram to the message in the chat: bot, scenarios and courier are the
real ones, each talks to the sandbox's Bot API.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bots.services import BotServices
from bots.telegram import TelegramBot, open_bot
from bots.telegram.events import events_mode
from core.directory.linking import Linking
from core.services import Services
from couriers import telegram_bot
from tests.sandbox.bot_api_clients import ANNA, BORIS, GROUP, BotApi, bot_api
from tests.scenarios.execution.conftest import WITHIN, Installation
from tests.support.stack import QUICK, TENANT
from tests.support.waiting import until

__all__ = ["bot_api"]

SCENARIOS = """
ask:
  actions:
    - {type: user, user_state: question}
    - {type: send, text: "Ваш вопрос?"}
take:
  actions:
    - {type: user, user_state: ""}
    - {type: request, request_name: question}
    - {type: send, text: "Записано: <b>{request_text}</b>", chain: completed}
list:
  actions:
    - {type: request_management, required_role: staff}
    - {type: send, additional_text: " — всё", chain: completed}
    - {type: send, text: "Не для вас", chain: drop}
welcome:
  actions:
    - {type: send, text: "Здравствуйте, {joined_usernames|tags}! Вас позвал {invite_link_creator_username}."}
link:
  actions:
    - {type: invite_link, member_limit: 1, group_admin: true}
    - {type: send, text: "{invite_link}", private_answer: true, chain: completed}
    - {type: send, text: "Нельзя", message_reply: true, chain: drop}
"""


@dataclass
class Town:
    """The people of Telegram and what their chats show."""

    bot_api: BotApi

    def texts(self, chat: int) -> list[str]:
        """What the bot has written in a chat."""
        messages = self.bot_api.server.people.messages(chat)
        return [one["text"] for one in messages if one["from"]["is_bot"]]

    async def next_text(self, chat: int, act: Any) -> str:
        """What the bot writes in a chat after a person has acted."""
        before = len(self.texts(chat))
        act()
        await until(lambda: len(self.texts(chat)) > before, within=WITHIN)
        return self.texts(chat)[before]

    async def answer(self, user: int, text: str, chat: int = 0, shown_in: int = 0) -> str:
        """What the bot answers to a text."""
        return await self.next_text(
            shown_in or chat or user, lambda: self.bot_api.server.people.write(user, text, chat or None)
        )


async def bot_of(installation: Installation, api: BotApi) -> TelegramBot:
    stack = installation.stack
    core = replace(Services.on(stack.store), deliveries=stack.deliveries, tracker=stack.tracker)
    services = BotServices(core, Linking(stack.store, core.directory, None), TENANT)
    return await open_bot(api.server.token, api.server.url, services, mode=events_mode())


@pytest.fixture
async def town(bare: Installation, bot_api: BotApi, tmp_path: Path) -> AsyncIterator[Town]:
    """A club that Boris administers; he is staff. Nobody else is a member."""
    server = bot_api.server
    server.joining.set_up(GROUP, title="Клуб", administrators=[BORIS])
    bare.bot_api = {"bot_token": server.token, "bot_api_url": server.url}
    bare.write("bot.yaml", f"roles: {{staff: {{users: [{BORIS}]}}}}").write("scenarios/t.yaml", SCENARIOS)
    bare.write("triggers.yaml", "text: {exact: {/ask: t.ask, /list: t.list}, state: {question: t.take}}")
    bare.write("group_triggers.yaml", "text: {exact: {/link: t.link}}\nnew_member: {default: t.welcome}")
    courier = await telegram_bot.open(telegram_bot.Settings(server.token, server.url, timedelta(seconds=5)), tmp_path)
    await bare.stack.courier(courier, QUICK)  # type: ignore[arg-type]  # typed for the stack's own class, takes any
    bot, ready = await bot_of(bare, bot_api), asyncio.Event()
    running = asyncio.create_task(bot.run(ready.set))
    await ready.wait()
    await bare.start()
    yield Town(bot_api)
    bot.stop()
    await running
    await bot.close()
    await courier.close()


@pytest.mark.row("C-66", "C-65", "C-68")
async def test_a_question_is_asked_taken_and_shown_to_the_staff(town: Town) -> None:
    assert await town.answer(ANNA, "/ask") == "Ваш вопрос?"
    assert await town.answer(ANNA, "Где <ключ>?") == "Записано: Где <ключ>?"
    listed = await town.answer(BORIS, "/list")
    assert "Где <ключ>?" in listed
    assert listed.endswith(" — всё")
    assert await town.answer(ANNA, "/list") == "Не для вас"


@pytest.mark.row("C-69", "C-70", "C-72")
async def test_an_administrator_gets_a_link_and_who_joins_by_it_is_welcomed(town: Town) -> None:
    link = await town.answer(BORIS, "/link", GROUP, shown_in=BORIS)
    assert link.startswith("https://t.me/+")
    join = town.bot_api.server.joining.join
    anna = town.bot_api.server.people.set_person(ANNA, username="anna")
    welcome = await town.next_text(GROUP, lambda: join(ANNA, link=link))
    assert welcome == f"Здравствуйте, @{anna.username}! Вас позвал sandbox4343_bot."
    assert await town.answer(ANNA, "/link", GROUP) == "Нельзя"
