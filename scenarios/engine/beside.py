"""Two bots in one chat: one of a school's own, and the dialog of teachers beside it (W-44). Pure.

    an event ─▶ a trigger of the own bot other than `*` ─▶ a trigger of the dialog other than `*` ─▶ `*` of the own bot

So the commands of teachers work beside every bot. A bot that has one of them itself answers it; one whose settings.yaml
says `teacher: {enabled: false}`, as a copy of the dialog does, has no dialog beside it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from scenarios.bot import Bot, BotCommand
from scenarios.bot.data import Data
from scenarios.bot.new_bot import TEACHER
from scenarios.engine.triggers import CompiledTriggers, Selection

TEACHER_SECTION = "teacher"
"""The section of settings.yaml that switches the dialog off."""

_MOST_COMMANDS = 100
"""Of one menu. Source: core.telegram.org/bots/api#setmycommands."""

_PRIVATE, _GENERAL = "all_private_chats", "default"


class AnsweredCommands(Struct, frozen=True):
    """The commands of teachers: those that the dialog answers, and those that a bot beside it answers itself."""

    by_dialog: tuple[str, ...]
    by_bot: tuple[str, ...]


def has_teacher_beside(folder: Path, own: Bot) -> bool:
    """Return whether the dialog of teachers answers beside the bot of this folder."""
    section = own.settings.get(TEACHER_SECTION)
    is_off = isinstance(section, Mapping) and section.get("enabled") is False
    return folder.absolute() != TEACHER and not is_off


def select_beside(
    own: CompiledTriggers, teacher: CompiledTriggers, event: Mapping[str, Data], state: str = ""
) -> tuple[Selection, bool]:
    """Return the scenarios for an event, and whether they are those of the dialog."""
    by_own = own.select(event, state)
    if by_own.is_specific:
        return by_own, False
    by_teacher = teacher.select(event, state)
    return (by_teacher, True) if by_teacher.is_specific else (by_own, False)


def menu_beside(own: Bot, teacher: Bot) -> Sequence[BotCommand]:
    """Return the commands for the menus of Telegram: those of the own bot, and in private chats behind them those of
    the dialog that it answers. Telegram shows of two menus only that of private chats, so this one then has the
    general commands of the own bot, too.
    """
    answered = answered_commands(own, teacher).by_dialog
    private = [one for one in own.commands if one.scope == _PRIVATE]
    shown = private or [replace(one, scope=_PRIVATE) for one in own.commands if one.scope == _GENERAL]
    names = {one.command for one in shown}
    added = [one for one in teacher.commands if f"/{one.command}" in answered and one.command not in names]
    added = added[: max(0, _MOST_COMMANDS - len(shown))]
    others = [one for one in own.commands if one.scope != _PRIVATE]
    return [*others, *shown, *added] if added else own.commands


def answered_commands(own: Bot, teacher: Bot) -> AnsweredCommands:
    """Return who answers each command of teachers in a private chat."""
    commands = [one.key for one in teacher.triggers.section("text").get("exact", ()) if one.key.startswith("/")]
    triggers, beside = CompiledTriggers(own), CompiledTriggers(teacher)
    events = {one: {"kind": "text", "event_text": one} for one in commands}
    is_by_dialog = {one: select_beside(triggers, beside, event)[1] for one, event in events.items()}
    return AnsweredCommands(
        tuple(one for one in commands if is_by_dialog[one]), tuple(one for one in commands if not is_by_dialog[one])
    )
