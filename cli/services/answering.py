"""Says which bot answers what: one of ADA_SCENARIOS, and the dialog of teachers beside it (W-44)."""

from pathlib import Path

from cli.settings.bot_folders import is_bot
from scenarios.bot import Bot
from scenarios.bot.new_bot import TEACHER
from scenarios.engine.triggers import answered_commands, has_teacher_beside
from scenarios.loader import load


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
