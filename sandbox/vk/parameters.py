"""Reads the parameters of a call. They are strings in a form and any value in VKScript."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.vk.dialogs import MessageContent
from sandbox.vk.errors import CallFailed, parameter_error
from sandbox.vk.keyboards import read_keyboard
from sandbox.vk.uploads import Uploads
from sandbox.vkscript import Value

MAX_PEERS = 100
MAX_TEXT = 4096
MAX_ATTACHMENTS = 10
_RECIPIENTS = ("peer_ids", "user_ids", "peer_id", "user_id")


@dataclass(frozen=True, slots=True)
class Message:
    """The parameters of messages.send. `many`: the response has an entry per peer instead of one id."""

    peers: tuple[int, ...]
    content: MessageContent
    random_id: int
    many: bool


def read_message(parameters: Mapping[str, Value], uploads: Uploads) -> Message:
    """Read the parameters of messages.send. Raises CallFailed with VK's code (100, 911, 914)."""
    name = next((name for name in _RECIPIENTS if parameters.get(name) not in (None, "", [])), None)
    if name is None:
        raise parameter_error("peer_id, peer_ids, user_id or user_ids is required")
    peers = read_ids(parameters[name], name)
    if len(peers) > (MAX_PEERS if name.endswith("s") else 1):
        raise parameter_error(f"{name} has too many elements")
    content = read_content(parameters, uploads)
    return Message(peers, content, _random_id(parameters.get("random_id")), name[-1] == "s")


def read_content(parameters: Mapping[str, Value], uploads: Uploads) -> MessageContent:
    """Read what a message has: for messages.send and messages.edit. Raises CallFailed."""
    given = str(parameters.get("attachment") or "")
    files = tuple(uploads.find(name) for name in given.split(",") if name)
    if len(files) > MAX_ATTACHMENTS:
        raise parameter_error("attachment has too many elements")
    text = _text(parameters.get("message"), may_be_empty=bool(files))
    return MessageContent(text, read_keyboard(parameters.get("keyboard")), files, _reply_to(parameters.get("forward")))


def _reply_to(forward: Value) -> int:
    """Return the message that is replied to, by its number in the dialog; 0 for none."""
    if forward is None or forward == "":
        return 0
    try:
        given: Any = json.loads(forward) if isinstance(forward, str) else forward
        (number,) = given["conversation_message_ids"]
        return int(number) if given["is_reply"] else 0
    except (ValueError, TypeError, KeyError):
        raise parameter_error("forward is invalid") from None


def read_number(parameters: Mapping[str, Value], name: str) -> int:
    """Read one whole number that is required. Raises CallFailed."""
    if parameters.get(name) in (None, ""):
        raise parameter_error(f"{name} is a required parameter")
    return _integer(parameters[name], name)


def read_ids(value: Value, name: str) -> tuple[int, ...]:
    """Read a list of ids: an array, one number, or numbers separated by commas."""
    if value is None or value == "":
        return ()
    items = value if isinstance(value, list) else str(value).split(",")
    return tuple(_integer(item, name) for item in items)


def _integer(value: Value, name: str) -> int:
    try:
        number = int(str(value)[:20])
    except ValueError:
        raise parameter_error(f"{name} not integer") from None
    if number == 0:
        raise parameter_error(f"{name} is invalid")
    return number


def _random_id(value: Value) -> int:
    if value is None or value == "":
        raise parameter_error("random_id is a required parameter")
    number = _integer(value, "random_id")
    if not -(2**31) <= number < 2**31:
        raise parameter_error("random_id not integer")
    return number


def _text(value: Value, *, may_be_empty: bool) -> str:
    text = "" if value is None or isinstance(value, (list, dict)) else str(value)
    if not text.strip() and not may_be_empty:
        raise parameter_error("message is empty or invalid")
    if len(text) > MAX_TEXT:
        raise CallFailed(914)
    return text
