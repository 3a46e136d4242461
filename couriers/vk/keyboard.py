"""Buttons of a message as a keyboard of VK. Pure.

A button below a message is a callback button: a press is an event, and the message can be edited. Its data is in the
payload, `{"data": …}`. Source: dev.vk.com, "Keyboards for bots".
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from couriers.sending import Button, Content, KeyboardLimits

LONGEST_LABEL = 40
LONGEST_DATA = 245
"""Characters of a button's data as JSON: a payload has 255, and the name around it takes the others."""
_WIDTH = 5

LIMITS = KeyboardLimits(
    inline_rows=6,
    inline_buttons=10,
    reply_rows=10,
    reply_buttons=40,
    width=_WIDTH,
    label=LONGEST_LABEL,
    data=LONGEST_DATA,
)
"""Rows of more than five are continued in the next row. Buttons that do not fit become numbered choices in the text."""


def keyboard(content: Content) -> str:
    """Return the parameter `keyboard` of messages.send; "" to leave the keyboard as it is. Inline buttons win."""
    if rows := LIMITS.rows(content.inline):
        return _json([[_inline_button(button) for button in row] for row in rows], inline=True)
    if content.reply is not None:
        return _json([[_text_button(label) for label in row] for row in LIMITS.rows(content.reply)], inline=False)
    return ""


def _json(rows: Sequence[Any], *, inline: bool) -> str:
    return json.dumps({"inline": inline, "one_time": False, "buttons": rows}, ensure_ascii=False)


def _payload(button: Button) -> str:
    return json.dumps({"data": button.data}, ensure_ascii=False)


def _inline_button(button: Button) -> Mapping[str, Any]:
    if button.url:
        return {"action": {"type": "open_link", "label": button.text, "link": button.url}}
    return {"action": {"type": "callback", "label": button.text, "payload": _payload(button)}}


def _text_button(label: str) -> Mapping[str, Any]:
    return {"action": {"type": "text", "label": label}}
