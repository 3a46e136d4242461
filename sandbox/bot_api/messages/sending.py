"""sendMessage, and what it shares with the other methods that send."""

from collections.abc import Mapping
from typing import Any

from sandbox.bot_api.messages.formatting import parse_text, utf16_length
from sandbox.bot_api.messages.keyboards import read_markup
from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.chats import Chat
from sandbox.bot_api.state.errors import bad_request, forbidden
from sandbox.bot_api.state.parameters import Parameters

MAX_TEXT = 4096
MAX_CAPTION = 1024

Json = dict[str, Any]


def send_message(bot: Bot, parameters: Parameters) -> Json:
    chat = writable_chat(bot, parameters)
    content = read_text(parameters)
    return send(bot, chat, parameters, content, content["text"])


def read_text(parameters: Parameters) -> Json:
    """Return the fields text and entities of a message. Raises ApiError."""
    text, entities = _formatted(parameters, "text", "entities")
    if not text.strip():
        raise bad_request("message text is empty")
    if utf16_length(text) > MAX_TEXT:
        raise bad_request("message is too long")
    return {"text": text, **({"entities": entities} if entities else {})}


def read_caption(parameters: Parameters) -> Json:
    """Return the fields caption and caption_entities of a message. Raises ApiError."""
    text, entities = _formatted(parameters, "caption", "caption_entities")
    if utf16_length(text) > MAX_CAPTION:
        raise bad_request("message caption is too long")
    fields = {"caption": text} if text else {}
    return {**fields, **({"caption_entities": entities} if entities else {})}


def _formatted(parameters: Parameters, name: str, entities_name: str) -> tuple[str, list[Json]]:
    text, entities = parse_text(parameters.text(name), parameters.text("parse_mode"))
    return text, parameters.json(entities_name) or entities


def writable_chat(bot: Bot, parameters: Parameters) -> Chat:
    """Return the chat of chat_id. Raises ApiError, also if the person has blocked the bot."""
    chat = bot.chats.named(parameters.text("chat_id"))
    if chat.is_private and bot.people.get(chat.id).has_blocked:
        raise forbidden("bot was blocked by the user")
    return chat


def send(bot: Bot, chat: Chat, parameters: Parameters, content: Json, shown: str) -> Json:
    """Store a message with what all messages may have: a reply and a keyboard. Raises ApiError."""
    markup, reply = read_markup(parameters), replied_message(chat, parameters)
    content = {**content, **read_topic(chat, parameters)}
    if reply is not None:
        content = {**content, "reply_to_message": reply}
    if markup is not None and "inline_keyboard" in markup:
        content = {**content, "reply_markup": markup}
    message = bot.send(chat, content, shown)
    if markup is not None and "keyboard" in markup:
        chat.keyboard = markup["keyboard"]
    elif markup is not None and markup.get("remove_keyboard"):
        chat.keyboard = []
    return message


def read_topic(chat: Chat, parameters: Parameters) -> Json:
    """Return the fields of a message in a topic. Raises ApiError."""
    topic = parameters.integer("message_thread_id")
    if topic and topic not in (chat.group.topics or {}):
        raise bad_request("message thread not found")
    return {"message_thread_id": topic, "is_topic_message": True} if topic else {}


def replied_message(chat: Chat, parameters: Parameters) -> Json | None:
    """Return the message that is replied to, None if there is none. Raises ApiError."""
    reply = parameters.json("reply_parameters") or {}
    if not isinstance(reply, dict) or not isinstance(reply.get("message_id", 0), int):
        raise bad_request("can't parse reply parameters JSON object")
    message_id = reply.get("message_id") or parameters.integer("reply_to_message_id")
    if not message_id:
        return None
    found = chat.messages.get(message_id)
    if found is None and not reply.get("allow_sending_without_reply"):
        raise bad_request("message to be replied not found")
    return None if found is None else {name: value for name, value in found.items() if name != "reply_to_message"}


SENDING: Mapping[str, Any] = {"sendMessage": send_message}
