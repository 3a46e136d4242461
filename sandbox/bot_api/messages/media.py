"""The methods that send files: sendPhoto, sendVideo, sendDocument, sendAnimation, sendAudio, sendVoice, sendMediaGroup.

Source: core.telegram.org/bots/api#sendphoto, #sendmediagroup.
"""

from collections.abc import Callable, Mapping, Set
from functools import partial
from secrets import token_hex
from typing import Any

from sandbox.bot_api.messages.files import KINDS, file_object, given_file
from sandbox.bot_api.messages.sending import read_caption, read_topic, replied_message, send, writable_chat
from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.errors import bad_request
from sandbox.bot_api.state.parameters import Parameters

SMALLEST_GROUP, LARGEST_GROUP = 2, 10
_TOGETHER = (frozenset({"photo", "video"}), frozenset({"document"}), frozenset({"audio"}))
"""The kinds of media that a group may contain together."""

Json = dict[str, Any]


def _send_file(kind: str, bot: Bot, parameters: Parameters) -> Json:
    chat = writable_chat(bot, parameters)
    caption = read_caption(parameters)
    file_id, upload = given_file(bot, parameters, kind, parameters.text(kind))
    content = {kind: file_object(kind, file_id, upload, parameters), **caption}
    return send(bot, chat, parameters, content, shown(kind, upload.name, caption))


def shown(kind: str, name: str, caption: Json) -> str:
    """Return the text of the inbox for a message with a file."""
    return caption.get("caption") or f"[{kind}] {name}"


def send_media_group(bot: Bot, parameters: Parameters) -> list[Json]:
    """Send a group of files. All of it is checked before any of it is sent."""
    chat = writable_chat(bot, parameters)
    reply = replied_message(chat, parameters)
    topic = read_topic(chat, parameters)
    album = {"media_group_id": str(int(token_hex(7), 16)), **({} if reply is None else {"reply_to_message": reply})}
    contents = [read_media(bot, parameters, item) for item in _items(parameters)]
    return [bot.send(chat, {**content, **album, **topic}, text) for content, text in contents]


def _items(parameters: Parameters) -> list[Json]:
    items = parameters.json("media")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise bad_request("can't parse media JSON object")
    if not SMALLEST_GROUP <= len(items) <= LARGEST_GROUP:
        raise bad_request("media must include 2-10 items")
    if not may_be_together({str(item.get("type")) for item in items}):
        raise bad_request("this type of message can't be sent in one album with the others")
    return items


def may_be_together(kinds: Set[str]) -> bool:
    """Return whether one group may contain these kinds of media."""
    return any(kinds <= together for together in _TOGETHER)


def read_media(bot: Bot, parameters: Parameters, item: Json) -> tuple[Json, str]:
    """Return the content of an InputMedia, and the text of the inbox for it. Raises ApiError."""
    kind, media = item["type"], str(item.get("media", ""))
    fields = Parameters({name: str(item[name]) for name in ("caption", "parse_mode", "duration") if item.get(name)})
    caption = read_caption(fields)
    file_id, upload = given_file(bot, parameters, media.removeprefix("attach://"), media)
    return {kind: file_object(kind, file_id, upload, fields), **caption}, shown(kind, upload.name, caption)


_METHODS: Mapping[str, Callable[[Bot, Parameters], Json]] = {
    f"send{kind.title()}": partial(_send_file, kind) for kind in KINDS
}
MEDIA: Mapping[str, Any] = {**_METHODS, "sendMediaGroup": send_media_group}
