"""Reads updates of the Bot API, which are the same over long polling and over a webhook. Pure.

Source: core.telegram.org/bots/api#update.
"""

from collections.abc import Mapping
from typing import Any

from core.updates.updates import Update
from providers.telegram_bot import CHANNEL

ALLOWED = ("message", "callback_query")
"""The kinds of updates that the bot asks for."""


def read_update(given: Mapping[str, Any]) -> Update | None:
    """The update for the conversation; None for one that is not answered: without a sender, from a group or another
    bot, or of another kind. Never raises, whatever the update is.
    """
    update_id, message, query = (given.get(name) for name in ("update_id", *ALLOWED))
    if not isinstance(update_id, int):
        return None
    if isinstance(message, dict) and _is_private(message):
        return _update(str(update_id), message.get("from"), text=_text(message, "text"))
    if isinstance(query, dict) and isinstance(query.get("message"), dict) and _is_private(query["message"]):
        button, callback = _text(query, "data"), _text(query, "id")
        number = str(query["message"].get("message_id", ""))
        return _update(str(update_id), query.get("from"), button=button, message=number, callback=callback)
    return None


def _is_private(message: Mapping[str, Any]) -> bool:
    chat = message.get("chat")
    return isinstance(chat, dict) and chat.get("type") == "private"


def _update(
    update_id: str, sender: Any, *, text: str = "", button: str = "", message: str = "", callback: str = ""
) -> Update | None:
    """None without a sender, and for a press without data."""
    if not isinstance(sender, dict) or not isinstance(sender.get("id"), int) or sender.get("is_bot"):
        return None
    if callback and not button:
        return None
    name = " ".join(filter(None, (_text(sender, "first_name"), _text(sender, "last_name"))))
    locale = _text(sender, "language_code")
    return Update(update_id, CHANNEL, str(sender["id"]), name, locale, text, button, message, callback)


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    return value if isinstance(value, str) else ""
