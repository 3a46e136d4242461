"""The menus of commands are those of the active version, and no menu stays that the bot no longer has."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from couriers.telegram_bot.client import NamedCalls
from scenarios.bot.new_bot import TEACHER
from scenarios.execution.active_bot import ActiveBot, watch
from scenarios.execution.menus import Menus
from tests.sandbox.bot_api_clients import BotApi, bot_api
from tests.support.stack import Stack
from tests.support.waiting import until
from tests.support.whole_aiogram import types

__all__ = ["bot_api"]

START = "{command: start, description: Меню}"
BAN = "{command: ban, description: Выгнать, scope: chat_administrators, chat_id: -1000000000123}"
STOP = "{command: stop, description: Стоп}"
MINE = "{command: mine, description: Моё, scope: all_private_chats}"
HELP = "{command: help, description: Помощь}"
ANSWERS = {
    "triggers.yaml": "text: {exact: {/console: s.main}}",
    "scenarios/s.yaml": "main: {actions: [{type: typing}]}",
}
GROUP = types.BotCommandScopeChatAdministrators(chat_id=-1_000_000_000_123)
PRIVATE = types.BotCommandScopeAllPrivateChats()


@pytest.fixture
async def telegram(bot_api: BotApi) -> AsyncIterator[NamedCalls]:
    client = bot_api.named_calls()
    yield client
    await client.close()


def active(folder: Path, *commands: str) -> ActiveBot:
    write(folder, *commands)
    return ActiveBot(folder)


def write(folder: Path, *commands: str) -> None:
    (folder / "bot.yaml").write_text(f"commands: [{', '.join(commands)}]")


async def shown(bot_api: BotApi, scope: types.BotCommandScopeUnion | None = None) -> list[str]:
    return [command.command for command in await bot_api.bot.get_my_commands(scope)]


async def test_commands_are_registered_by_scope_and_stale_menus_are_cleared(
    stack: Stack, bot_api: BotApi, telegram: NamedCalls, tmp_path: Path
) -> None:
    await bot_api.bot.set_my_commands([types.BotCommand(command="old", description="old")], PRIVATE)
    await Menus(telegram, stack.store, active(tmp_path, START, STOP, BAN)).register()
    assert await shown(bot_api) == ["start", "stop"]
    assert await shown(bot_api, GROUP) == ["ban"]
    assert await shown(bot_api, PRIVATE) == []
    other_process = await Store.open(stack.server.url)
    await Menus(telegram, other_process, active(tmp_path, STOP)).register()
    assert await shown(bot_api) == ["stop"]
    assert await shown(bot_api, GROUP) == []
    await other_process.close()


@pytest.mark.parametrize(
    ("files", "general", "private"),
    [
        ({"bot.yaml": f"commands: [{START}]"}, ["start"], ["start", "select", "console", "help"]),
        ({"bot.yaml": f"commands: [{START}, {MINE}]"}, ["start"], ["mine", "select", "console", "help"]),
        ({"bot.yaml": f"commands: [{HELP}]"}, ["help"], ["help", "select", "console"]),
        ({"bot.yaml": f"commands: [{START}]", **ANSWERS}, ["start"], ["start", "select", "help"]),
        ({"bot.yaml": f"commands: [{START}]", "settings.yaml": "teacher: {enabled: false}"}, ["start"], []),
        ({}, [], ["select", "console", "help"]),
    ],
)
async def test_private_chats_show_also_the_commands_of_the_dialog_that_answers_beside(
    stack: Stack,
    bot_api: BotApi,
    telegram: NamedCalls,
    tmp_path: Path,
    files: dict[str, str],
    general: list[str],
    private: list[str],
) -> None:
    """Of two menus Telegram shows that of private chats alone, so it has the general commands, too."""
    (tmp_path / "scenarios").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    await Menus(telegram, stack.store, ActiveBot(tmp_path), ActiveBot(TEACHER)).register()
    assert (await shown(bot_api), await shown(bot_api, PRIVATE)) == (general, private)


async def test_a_reload_registers_the_new_commands_also_after_an_outage(
    stack: Stack, bot_api: BotApi, telegram: NamedCalls, tmp_path: Path
) -> None:
    bot = active(tmp_path, START)
    bot_api.inject_fault("502", method="setMyCommands")
    keeping = asyncio.create_task(Menus(telegram, stack.store, bot).keep())
    watching = asyncio.create_task(watch(lambda: [bot], every=0.05))

    async def is_shown(*wanted: str) -> bool:
        return await shown(bot_api) == list(wanted)

    await until(lambda: is_shown("start"))
    write(tmp_path, STOP)
    await until(lambda: is_shown("stop"))
    await cancel_and_wait(keeping, watching)


async def test_a_menu_that_telegram_refuses_is_reported_and_the_others_are_registered(
    stack: Stack, bot_api: BotApi, telegram: NamedCalls, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = "{command: x, description: x, scope: chat, chat_id: '@nowhere'}"
    await Menus(telegram, stack.store, active(tmp_path, unknown, START)).register()
    assert await shown(bot_api) == ["start"]
    assert "refuses the menu for chat @nowhere" in caplog.text


async def test_a_revoked_token_is_reported_without_the_token_and_tried_again(
    stack: Stack, bot_api: BotApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "scenarios")
    revoked = bot_api.named_calls("4343:revoked")
    keeping = asyncio.create_task(Menus(revoked, stack.store, active(tmp_path, START)).keep())
    await until(lambda: "Unauthorized" in caplog.text)
    assert not keeping.done()
    await cancel_and_wait(keeping)
    await revoked.close()
    assert "4343:revoked" not in caplog.text
