"""Keyboards of VK: read as the API reads them, with its limits, and shown to a person.

Source: dev.vk.com, "Keyboards for bots".
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.vk.errors import CallFailed
from sandbox.vkscript import Value

_INVALID = 911
_MAX_LABEL, _MAX_PAYLOAD = 40, 255
_INLINE, _REPLY = (6, 5, 10), (10, 5, 40)  # most rows, buttons in a row, buttons
_COLORS = frozenset({"primary", "secondary", "negative", "positive"})
_TYPES = frozenset({"text", "callback", "open_link"})


@dataclass(frozen=True, slots=True)
class KeyboardButton:
    """`type`: "text", "callback" or "open_link"; the sandbox's people have no other ones."""

    type: str
    label: str
    payload: str
    link: str


@dataclass(frozen=True, slots=True)
class Keyboard:
    """`inline`: below the message; otherwise in place of the person's keyboard, which no rows remove."""

    inline: bool
    one_time: bool
    rows: Sequence[Sequence[KeyboardButton]]


def read_keyboard(value: Value) -> Keyboard | None:
    """Read the parameter `keyboard`: JSON, or an object in VKScript. Raises CallFailed with VK's code 911."""
    if value is None or value == "":
        return None
    try:
        given = json.loads(value) if isinstance(value, str) else value
        keyboard = _keyboard(given)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _invalid("it is no keyboard") from None
    _check_size(keyboard)
    return keyboard


def _keyboard(given: Any) -> Keyboard:
    inline, one_time = given.get("inline", False), given.get("one_time", False)
    if not isinstance(inline, bool) or not isinstance(one_time, bool) or (inline and one_time):
        raise _invalid("inline and one_time are true or false, and not both true")
    rows = [[_button(button) for button in row] for row in given["buttons"]]
    return Keyboard(inline, one_time, rows)


def _button(given: Mapping[str, Any]) -> KeyboardButton:
    action = given["action"]
    button = KeyboardButton(
        action["type"], action["label"], _payload(action.get("payload", "")), action.get("link", "")
    )
    if button.type not in _TYPES or (button.type == "open_link") != bool(button.link):
        raise _invalid("button type is invalid")
    if not 1 <= len(button.label) <= _MAX_LABEL or len(button.payload) > _MAX_PAYLOAD:
        raise _invalid("label or payload has a wrong length")
    if "color" in given and (given["color"] not in _COLORS or button.type == "open_link"):
        raise _invalid("color is invalid")
    return button


def _payload(given: Any) -> str:
    """Return the payload as JSON. An object is converted, a text must be JSON."""
    if given == "":
        return ""
    text = given if isinstance(given, str) else json.dumps(given)
    json.loads(text)
    return text


def _check_size(keyboard: Keyboard) -> None:
    rows, width, buttons = _INLINE if keyboard.inline else _REPLY
    widths = [len(row) for row in keyboard.rows]
    if len(widths) > rows or max(widths, default=1) > width or min(widths, default=1) < 1 or sum(widths) > buttons:
        raise _invalid("too many buttons, or an empty row")
    if keyboard.inline and not widths:
        raise _invalid("an inline keyboard needs buttons")


def _invalid(why: str) -> CallFailed:
    return CallFailed(_INVALID, f"Keyboard format is invalid: {why}")
