"""Reads updates of the Bot API. Pure."""

from aiogram import types

from bots.updates import Update

CHANNEL = "telegram-bot"
"""The channel of the contacts of those who write to the bot."""

ALLOWED = ("message", "callback_query")
"""The kinds of updates that the bot asks for."""


def read_update(given: types.Update) -> Update | None:
    """The update for the conversation; None for one that is not answered: without a sender, from a group or another
    bot, or of another kind.
    """
    if given.message is not None:
        return _message(str(given.update_id), given.message)
    if given.callback_query is not None:
        return _press(str(given.update_id), given.callback_query)
    return None


def _message(update_id: str, message: types.Message) -> Update | None:
    sender = message.from_user
    if sender is None or sender.is_bot or message.chat.type != "private":
        return None
    name, locale = sender.full_name, sender.language_code or ""
    return Update(update_id, CHANNEL, str(sender.id), name, locale, message.text or "")


def _press(update_id: str, query: types.CallbackQuery) -> Update | None:
    sender, message = query.from_user, query.message
    if message is None or message.chat.type != "private" or not query.data:
        return None
    name, locale = sender.full_name, sender.language_code or ""
    return Update(
        update_id,
        CHANNEL,
        str(sender.id),
        name,
        locale,
        button=query.data,
        message=str(message.message_id),
        callback=query.id,
    )
