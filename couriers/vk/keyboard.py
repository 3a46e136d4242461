"""Buttons of a message as a keyboard of VK. Pure.

A button below a message is a callback button: a press is an event, and the message can be edited. Its data is in the
payload, `{"data": …}`. Source: dev.vk.com, "Keyboards for bots".
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.courier import Button, Content

LONGEST_LABEL, LONGEST_PAYLOAD = 40, 255
_WIDTH = 5


@dataclass(frozen=True, slots=True)
class _Limits:
    rows: int
    buttons: int


_INLINE = _Limits(rows=6, buttons=10)
_REPLY = _Limits(rows=10, buttons=40)


def can_show(content: Content) -> bool:
    """Whether a keyboard can have these buttons. Rows of more than five are continued in the next row."""
    return _fits(content.inline, _INLINE, _is_inline_button) and _fits(content.reply or (), _REPLY, _is_label)


def keyboard(content: Content) -> str:
    """Return the parameter `keyboard` of messages.send; "" to leave the keyboard as it is. Inline buttons win."""
    if rows := list(_rows(content.inline)):
        return _json([[_inline_button(button) for button in row] for row in rows], inline=True)
    if content.reply is not None:
        return _json([[_text_button(label) for label in row] for row in _rows(content.reply)], inline=False)
    return ""


def _json(rows: Sequence[Any], *, inline: bool) -> str:
    return json.dumps({"inline": inline, "one_time": False, "buttons": rows}, ensure_ascii=False)


def _rows(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    for row in rows:
        yield from (row[start : start + _WIDTH] for start in range(0, len(row), _WIDTH))


def _fits(rows: Sequence[Sequence[Any]], limits: _Limits, is_button: Any) -> bool:
    shown = list(_rows(rows))
    buttons = [button for row in shown for button in row]
    return len(shown) <= limits.rows and len(buttons) <= limits.buttons and all(map(is_button, buttons))


def _is_label(text: str) -> bool:
    """A reply keyboard writes its label, so that must not be cut."""
    return 1 <= len(text) <= LONGEST_LABEL


def _is_inline_button(button: Button) -> bool:
    if button.url:
        return bool(button.text) and button.url.startswith(("http://", "https://"))
    return bool(button.text) and len(_payload(button)) <= LONGEST_PAYLOAD


def _payload(button: Button) -> str:
    return json.dumps({"data": button.data}, ensure_ascii=False)


def _inline_button(button: Button) -> Mapping[str, Any]:
    label = button.text if len(button.text) <= LONGEST_LABEL else f"{button.text[: LONGEST_LABEL - 1]}…"
    if button.url:
        return {"action": {"type": "open_link", "label": label, "link": button.url}}
    return {"action": {"type": "callback", "label": label, "payload": _payload(button)}}


def _text_button(label: str) -> Mapping[str, Any]:
    return {"action": {"type": "text", "label": label}}
