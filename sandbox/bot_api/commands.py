"""The methods about the bot's menu of commands. A menu belongs to a scope and a language."""

import re
from collections.abc import Mapping
from typing import Any

from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.errors import bad_request
from sandbox.bot_api.state.parameters import Parameters

MAX_COMMANDS = 100
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_SCOPES = {
    "default": (),
    "all_private_chats": (),
    "all_group_chats": (),
    "all_chat_administrators": (),
    "chat": ("chat_id",),
    "chat_administrators": ("chat_id",),
    "chat_member": ("chat_id", "user_id"),
}
"""Type of a scope → its further fields."""


def set_my_commands(bot: Bot, parameters: Parameters) -> bool:
    commands = parameters.json("commands")
    if not isinstance(commands, list) or len(commands) > MAX_COMMANDS:
        raise bad_request("can't parse commands JSON object")
    for command in commands:
        _check(command)
    bot.commands[_scope(bot, parameters)] = commands
    return True


def _check(command: Any) -> None:
    """Check a menu. Raises ApiError."""
    if not isinstance(command, dict):
        raise bad_request("expected an Object as a BotCommand")
    if not _COMMAND.fullmatch(str(command.get("command", "")).removeprefix("/")):
        raise bad_request("BOT_COMMAND_INVALID")
    if not 1 <= len(str(command.get("description", ""))) <= 256:
        raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")


def get_my_commands(bot: Bot, parameters: Parameters) -> list[Any]:
    return bot.commands.get(_scope(bot, parameters), [])


def delete_my_commands(bot: Bot, parameters: Parameters) -> bool:
    bot.commands.pop(_scope(bot, parameters), None)
    return True


def _scope(bot: Bot, parameters: Parameters) -> str:
    """Return the name of a menu. Raises ApiError for a scope that Telegram does not know."""
    scope = parameters.json("scope") or {"type": "default"}
    if not isinstance(scope, dict) or scope.get("type") not in _SCOPES:
        raise bad_request("can't parse BotCommandScope: unsupported type specified")
    parts = [str(scope.get(name, "")) for name in _SCOPES[scope["type"]]]
    if parts:
        parts[0] = str(bot.chats.named(parts[0]).id)
    return " ".join([scope["type"], *parts, parameters.text("language_code")])


COMMANDS: Mapping[str, Any] = {
    "setMyCommands": set_my_commands,
    "getMyCommands": get_my_commands,
    "deleteMyCommands": delete_my_commands,
}
