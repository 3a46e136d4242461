"""The methods that send: sendMessage, sendPhoto, sendDocument, sendVoice; and getFile."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from sandbox.bot_api.bot import Bot
from sandbox.bot_api.chats import Chat
from sandbox.bot_api.errors import ApiError, bad_request, forbidden
from sandbox.bot_api.formatting import parse_text, utf16_length
from sandbox.bot_api.keyboards import read_markup
from sandbox.bot_api.parameters import Parameters, Upload

MAX_TEXT = 4096
MAX_CAPTION = 1024
MAX_UPLOAD = 50 * 1024 * 1024
MAX_DOWNLOAD = 20 * 1024 * 1024

Json = dict[str, Any]


def send_message(bot: Bot, parameters: Parameters) -> Json:
    chat = writable_chat(bot, parameters)
    content = read_text(parameters)
    return _send(bot, chat, parameters, content, content["text"])


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


def _send(bot: Bot, chat: Chat, parameters: Parameters, content: Json, shown: str) -> Json:
    markup, reply = read_markup(parameters), _replied_message(chat, parameters)
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


def _replied_message(chat: Chat, parameters: Parameters) -> Json | None:
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


# files


def send_photo(bot: Bot, parameters: Parameters) -> Json:
    return _send_file(bot, parameters, "photo")


def send_document(bot: Bot, parameters: Parameters) -> Json:
    return _send_file(bot, parameters, "document")


def send_voice(bot: Bot, parameters: Parameters) -> Json:
    return _send_file(bot, parameters, "voice")


def _send_file(bot: Bot, parameters: Parameters, kind: str) -> Json:
    chat = writable_chat(bot, parameters)
    caption = read_caption(parameters)
    file_id, upload = _file(bot, parameters, kind)
    content = {kind: _media(kind, file_id, upload, parameters), **caption}
    return _send(bot, chat, parameters, content, caption.get("caption") or f"[{kind}] {upload.name}")


def _file(bot: Bot, parameters: Parameters, kind: str) -> tuple[str, Upload]:
    """Return the file: an upload, a known file_id, or a URL; the sandbox downloads nothing, so a URL is the content."""
    upload, text = parameters.upload(kind), parameters.text(kind)
    if upload is not None:
        if not upload.content:
            raise bad_request("file must be non-empty")
        if len(upload.content) > MAX_UPLOAD:
            raise ApiError(413, "Request Entity Too Large")
        return bot.store_file(upload), upload
    if text in bot.files:
        return text, bot.files[text]
    if text.startswith(("http://", "https://")):
        linked = Upload(text.rpartition("/")[2] or "file", "application/octet-stream", text.encode())
        return bot.store_file(linked), linked
    raise bad_request("wrong file identifier/HTTP URL specified" if text else f"there is no {kind} in the request")


def _media(kind: str, file_id: str, upload: Upload, parameters: Parameters) -> Any:
    """Return the object Document or Voice, or the list of PhotoSize."""
    file = {"file_id": file_id, "file_unique_id": unique_id(upload), "file_size": len(upload.content)}
    if kind == "photo":
        return [{**file, "width": 640, "height": 480}]
    if kind == "voice":
        return {**file, "duration": parameters.integer("duration"), "mime_type": upload.content_type}
    return {**file, "file_name": upload.name, "mime_type": upload.content_type}


def unique_id(upload: Upload) -> str:
    """Return the id that is the same for the same content."""
    return sha256(upload.content).hexdigest()[:16]


def get_file(bot: Bot, parameters: Parameters) -> Json:
    file_id = parameters.text("file_id")
    upload = bot.files.get(file_id)
    if upload is None:
        raise bad_request("invalid file_id")
    if len(upload.content) > MAX_DOWNLOAD:
        raise bad_request("file is too big")
    file = {"file_id": file_id, "file_unique_id": unique_id(upload), "file_size": len(upload.content)}
    return {**file, "file_path": f"files/{file_id}"}


SENDING: Mapping[str, Any] = {
    "sendMessage": send_message,
    "sendPhoto": send_photo,
    "sendDocument": send_document,
    "sendVoice": send_voice,
    "getFile": get_file,
}
