"""The methods that change messages of the bot, answerCallbackQuery, and sendChatAction."""

import time
from collections.abc import Mapping
from typing import Any

from sandbox.bot_api.messages.files import KINDS
from sandbox.bot_api.messages.keyboards import read_inline_keyboard
from sandbox.bot_api.messages.media import may_be_together, read_media
from sandbox.bot_api.messages.sending import read_caption, read_text
from sandbox.bot_api.state.bot import CHANNEL, Bot
from sandbox.bot_api.state.chats import Chat
from sandbox.bot_api.state.errors import NOT_MODIFIED, bad_request
from sandbox.bot_api.state.parameters import Parameters

MAX_ANSWER = 200
MAX_DELETED = 100
CHAT_ACTIONS = ("typing", "upload_photo", "upload_video", "upload_document", "record_voice", "upload_voice")
_EXCHANGED = tuple(kind for kind in KINDS if kind != "voice")

Json = dict[str, Any]


def edit_message_text(bot: Bot, parameters: Parameters) -> Json:
    """Change a text. Without reply_markup the inline keyboard is removed, as Telegram does."""
    chat, message = _own_message(bot, parameters, "message to edit not found", "message can't be edited")
    if "text" not in message:
        raise bad_request("there is no text in the message to edit")
    return _replace(bot, chat, message, ("text", "entities"), read_text(parameters), parameters)


def edit_message_caption(bot: Bot, parameters: Parameters) -> Json:
    chat, message = _own_message(bot, parameters, "message to edit not found", "message can't be edited")
    if "text" in message:
        raise bad_request("there is no caption in the message to edit")
    return _replace(bot, chat, message, ("caption", "caption_entities"), read_caption(parameters), parameters)


def edit_message_media(bot: Bot, parameters: Parameters) -> Json:
    """Exchange the file with its caption, or add a file to a text. A voice is neither exchanged nor put in."""
    chat, message = _own_message(bot, parameters, "message to edit not found", "message can't be edited")
    media = parameters.json("media")
    if not isinstance(media, dict):
        raise bad_request('parameter "media" is required')
    if media.get("type") not in _EXCHANGED:
        raise bad_request(f'can\'t parse InputMedia: type "{media.get("type")}" is unsupported')
    kind = next((one for one in _EXCHANGED if one in message), "")
    if not kind and "text" not in message:
        raise bad_request("there is no media in the message to edit")
    if "media_group_id" in message:
        _check_album(kind, media["type"])
    content, _ = read_media(bot, parameters, media)
    names = ("text", "entities", "caption", "caption_entities", *_EXCHANGED)
    return _replace(bot, chat, message, names, content, parameters)


def _check_album(old: str, new: str) -> None:
    """Check that a file of an album may become one of another kind. Raises ApiError."""
    if new == "animation":
        raise bad_request("message content type can't be used in an album")
    if not may_be_together({old, new}):
        raise bad_request("can't change media type in the album")


def edit_message_reply_markup(bot: Bot, parameters: Parameters) -> Json:
    chat, message = _own_message(bot, parameters, "message to edit not found", "message can't be edited")
    return _replace(bot, chat, message, (), {}, parameters)


def _own_message(bot: Bot, parameters: Parameters, missing: str, forbidden: str) -> tuple[Chat, Json]:
    """Return the bot's message that the parameters name. Raises ApiError."""
    chat = bot.chats.named(parameters.text("chat_id"))
    message = chat.messages.get(parameters.integer("message_id"))
    if message is None:
        raise bad_request(missing)
    if message["from"]["id"] != bot.id:
        raise bad_request(forbidden)
    return chat, message


def _replace(
    bot: Bot, chat: Chat, message: Json, names: tuple[str, ...], content: Json, parameters: Parameters
) -> Json:
    """Replace the fields `names` and the keyboard. Raises ApiError if nothing would change."""
    markup = read_inline_keyboard(parameters)
    kept = {name: value for name, value in message.items() if name not in (*names, "reply_markup", "edit_date")}
    edited = {**kept, **content, **({"reply_markup": markup} if markup else {})}
    if edited == {name: value for name, value in message.items() if name != "edit_date"}:
        raise bad_request(NOT_MODIFIED)
    edited["edit_date"] = int(time.time())
    chat.messages[message["message_id"]] = edited
    bot.state.count(CHANNEL, "edited")
    return edited


def delete_message(bot: Bot, parameters: Parameters) -> bool:
    """Delete a message, the bot's own or, in private chats and as an administrator in groups, that of others."""
    chat = bot.chats.named(parameters.text("chat_id"))
    if chat.messages.pop(parameters.integer("message_id"), None) is None:
        raise bad_request("message to delete not found")
    return True


def delete_messages(bot: Bot, parameters: Parameters) -> bool:
    """Delete messages; those that do not exist are skipped."""
    chat, ids = bot.chats.named(parameters.text("chat_id")), parameters.json("message_ids")
    if not isinstance(ids, list) or not 1 <= len(ids) <= MAX_DELETED or not all(isinstance(one, int) for one in ids):
        raise bad_request("message identifiers are not specified")
    for message_id in ids:
        chat.messages.pop(message_id, None)
    return True


def answer_callback_query(bot: Bot, parameters: Parameters) -> bool:
    query = bot.open_query(parameters.text("callback_query_id"))
    if len(parameters.text("text")) > MAX_ANSWER:
        raise bad_request("MESSAGE_TOO_LONG")
    query.answer = {
        "text": parameters.text("text"),
        "alert": parameters.flag("show_alert"),
        "url": parameters.text("url"),
    }
    return True


def send_chat_action(bot: Bot, parameters: Parameters) -> bool:
    bot.chats.named(parameters.text("chat_id"))
    if parameters.text("action") not in CHAT_ACTIONS:
        raise bad_request("wrong parameter action in request")
    return True


EDITING: Mapping[str, Any] = {
    "editMessageText": edit_message_text,
    "editMessageCaption": edit_message_caption,
    "editMessageMedia": edit_message_media,
    "editMessageReplyMarkup": edit_message_reply_markup,
    "deleteMessage": delete_message,
    "deleteMessages": delete_messages,
    "answerCallbackQuery": answer_callback_query,
    "sendChatAction": send_chat_action,
}
