"""Registers the commands of bot.yaml with Telegram, by scope, and clears menus that the bot no longer has (C-73).

Guarantees: the menus are those of the active version, after the start and after each reload; commands that the dialog
of teachers answers beside the bot are among them. What this bot registered before in another scope is deleted. A scope
that Telegram refuses is reported, the others are registered; an outage is waited out.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec import Struct, json
from msgspec.structs import asdict

from core.errors import StoreError
from core.redis.keys import KEYS
from core.redis.store import Store
from couriers.telegram_bot import BotCallFailed, BotCallRefused
from scenarios.bot import BotCommand
from scenarios.bot.data import Data
from scenarios.context import Telegram
from scenarios.engine.triggers import has_teacher_beside, menu_beside
from scenarios.execution.active_bot import ActiveBot

log = logging.getLogger(__name__)

_FAULTS = (BotCallFailed, StoreError)
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0


class MenuScope(Struct, frozen=True, omit_defaults=True, order=True):
    """The message that shows a menu."""

    type: str
    chat_id: str = ""
    user_id: int = 0

    def __str__(self) -> str:
        return " ".join(filter(None, (self.type, self.chat_id, str(self.user_id or ""))))


_GENERAL = tuple(
    MenuScope(one) for one in ("default", "all_private_chats", "all_group_chats", "all_chat_administrators")
)
"""Cleared unless the bot has them: what registered them before may be another program."""


class Menus:
    """The menus of one bot of Telegram. `beside`: the dialog of teachers, for a bot other than itself."""

    def __init__(self, telegram: Telegram, store: Store, bot: ActiveBot, beside: ActiveBot | None = None) -> None:
        self._telegram = telegram
        self._store = store
        self._bot = bot
        self._beside = beside
        self._changed = asyncio.Event()
        bot.on_change(self._changed.set)

    async def keep(self) -> None:
        """Register now and after each change of the bot, until cancelled."""
        while True:
            self._changed.clear()
            await self._register_in_the_end()
            await self._changed.wait()

    async def _register_in_the_end(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self.register()
            except _FAULTS as fault:
                log.warning("the bot's commands are not registered (%s), again in %.0f s", _words(fault), pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def register(self) -> None:
        """Register all menus once. Raises StoreError and CallFailed for an outage."""
        menus = menus_of(self._commands())
        for scope in sorted({*_GENERAL, *await self._registered()} - menus.keys()):
            await self._try(scope, "deleteMyCommands")
        for scope, commands in menus.items():
            await self._try(scope, "setMyCommands", commands=commands)
        await self._store.command("SET", self._key, json.encode(list(menus)).decode())
        log.debug("the menus of commands are those of version %s: %d", self._bot.version, len(menus))

    def _commands(self) -> Sequence[BotCommand]:
        own, beside = self._bot, self._beside
        has_teacher = beside is not None and has_teacher_beside(own.folder, own.bot)
        return menu_beside(own.bot, beside.bot) if beside and has_teacher else own.bot.commands

    async def _try(self, scope: MenuScope, method: str, **parameters: Data) -> None:
        """Report what Telegram refuses for good, for example a chat in which the bot is no member."""
        try:
            await self._telegram.call(method, scope=telegram_scope(scope), **parameters)
        except BotCallRefused as refusal:
            log.warning("Telegram refuses the menu for %s: %s", scope, refusal)

    async def _registered(self) -> list[MenuScope]:
        stored = await self._store.command("GET", self._key)
        return json.decode(stored, type=list[MenuScope]) if stored else []

    @property
    def _key(self) -> str:
        return KEYS["menus"].at(0, str(self._telegram.id))


def _words(fault: Exception) -> str:
    return str(fault)[:200] if isinstance(fault, BotCallFailed) else type(fault).__name__


def menus_of(commands: Iterable[BotCommand]) -> dict[MenuScope, list[dict[str, str]]]:
    """Return the commands by scope, in the order of the file."""
    ordered = sorted(commands, key=_scope)  # stable, so the order within a scope stays
    return {
        scope: [{"command": one.command, "description": one.description} for one in found]
        for scope, found in groupby(ordered, key=_scope)
    }


def _scope(command: BotCommand) -> MenuScope:
    if not command.scope.startswith("chat"):
        return MenuScope(command.scope)
    return MenuScope(command.scope, str(command.chat_id), command.user_id or 0 if command.scope == "chat_member" else 0)


def telegram_scope(scope: MenuScope) -> dict[str, Data]:
    """Return the scope as the Bot API takes it."""
    return {name: value for name, value in asdict(scope).items() if value}
