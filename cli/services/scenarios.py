"""Reads the bot for processes other than the one that runs its scenarios, and says which bot answers what: one of
ADA_SCENARIOS, and the dialog of teachers beside it (W-44).
"""

import logging
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from cli.settings.bot_folders import bot_folder, is_bot
from cli.settings.settings import Settings
from core.queue import QueueClient
from core.redis.store import Store
from core.updates.ingress import MAX_AGE, Ingress
from couriers.inbound import events_ingress
from scenarios.bot import Bot
from scenarios.bot.durations import read_duration
from scenarios.bot.foreign_settings import EVENTS_SECTIONS, MAX_EVENT_AGE
from scenarios.bot.new_bot import TEACHER
from scenarios.engine.beside import answered_commands, has_teacher_beside
from scenarios.loader import load

log = logging.getLogger(__name__)

_TEACHER_ALONE = {
    "en": "the dialog of teachers: {commands}; it links chats with people",
    "ru": "диалог преподавателей: {commands}; он связывает чаты с людьми",
}
_MANY = {
    "en": "each bot of its folder, and the dialog of teachers beside it",
    "ru": "каждый бот из своей папки и рядом с ним диалог преподавателей",
}
_BOT_ALONE = {
    "en": "this bot alone: settings.yaml switches the dialog of teachers off",
    "ru": "только этот бот: диалог преподавателей выключен в settings.yaml",
}
_BESIDE = {
    "en": "this bot; the dialog of teachers answers {commands}",
    "ru": "этот бот; на {commands} отвечает диалог преподавателей",
}
_TAKEN = {"en": "; the bot itself answers {commands}", "ru": "; на {commands} отвечает сам бот"}


def open_ingress(store: Store, client: QueueClient, settings: Settings) -> Mapping[str, Ingress]:
    """Return the ways in by channel."""
    return events_ingress(store, client, settings.bot_tenant, max_age(settings))


def max_age(settings: Settings) -> timedelta:
    """Return how old an event of the bot of ADA_BOT_TENANT may be."""
    return max_age_of(bot_folder(settings, settings.bot_tenant))


def max_age_of(folder: Path | None) -> timedelta:
    """Return how old an event may be at the start of the process (C-16): `max_event_age_seconds` in the section
    `event_manager` or `tg_event_bot` of the bot's settings.yaml. Raises SetupError if there is no such folder.
    """
    sections = [load(folder).bot.settings.get(name) for name in EVENTS_SECTIONS] if folder else []
    written = (one[MAX_EVENT_AGE] for one in sections if isinstance(one, dict) and MAX_EVENT_AGE in one)
    given = next(written, None)
    found = MAX_AGE if given is None else read_duration(given)
    if found is None:
        log.warning("settings.yaml: max_event_age_seconds is %r, and not a number of seconds", given)
    return MAX_AGE if found is None else found


def answering(folder: Path | None, bot: Bot | None = None, language: str = "en") -> str:
    """Return the sentence for a bot's folder, for a folder of bots, or for no folder. `bot`: what the folder has, if it
    is read already. Raises SetupError if there is no such folder.
    """
    teacher = load(TEACHER).bot
    if folder is None or folder.absolute() == TEACHER:
        commands = ", ".join(answered_commands(Bot(), teacher).by_dialog)
        return _TEACHER_ALONE[language].format(commands=commands)
    if bot is None and not is_bot(folder):
        return _MANY[language]
    bot = bot or load(folder).bot
    if not has_teacher_beside(folder, bot):
        return _BOT_ALONE[language]
    answered = answered_commands(bot, teacher)
    found = _BESIDE[language].format(commands=", ".join(answered.by_dialog) or "–")
    return found + (_TAKEN[language].format(commands=", ".join(answered.by_bot)) if answered.by_bot else "")
