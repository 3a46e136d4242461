"""The attachment with which MAX shows buttons below a message. Pure. Source: dev.max.ru, "keyboard"."""

from collections.abc import Sequence
from typing import Any

LONGEST_LABEL = 128

Json = dict[str, Any]


def keyboard(rows: Sequence[Sequence[Json]]) -> Json:
    return {"type": "inline_keyboard", "payload": {"buttons": [list(row) for row in rows]}}


def callback(text: str, payload: str) -> Json:
    return {"type": "callback", "text": text, "payload": payload}


def link(text: str, url: str) -> Json:
    return {"type": "link", "text": text, "url": url}


def writing(text: str) -> Json:
    """Return a button that writes its text as the person."""
    return {"type": "message", "text": text}


def contact(text: str) -> Json:
    """Return a button that shares the person's contact."""
    return {"type": "request_contact", "text": text}
