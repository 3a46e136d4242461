"""The message of a `send`: its text and everything around it, from the values that the action sees. Pure."""

from collections.abc import Mapping
from typing import Any

from core.model.content import ParseMode
from core.model.text.text_marks import cut_text
from scenarios.sending.keyboards import contact_labels, inline_rows, reply_rows

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
"""The longest caption, in UTF-16 code units, that Telegram's Bot API shows; longer texts are cut (C-46)."""

_OPTIONS = (
    *("parse_mode", "message_reply", "callback_edit", "remove", "private_answer"),
    *("exact_message_id", "remove_message_id"),
)

Message = Mapping[str, Any]


def message(seen: Mapping[str, Any]) -> Message | None:
    """Return the message of `text`, and what else is given: `attachment`, `inline`, `reply`, options. None if nothing
    can be sent (C-47).

    `inline` wins over `reply`. `reply: []` removes the person's keyboard.
    """
    attachment = seen.get("attachment") or None
    longest = LONGEST_CAPTION if attachment else LONGEST_TEXT
    text = cut_text(_joined(seen), parse_mode(seen.get("parse_mode")), longest)
    if not text.strip() and attachment is None:
        return None
    around = {"attachment": attachment, **_keyboard(seen), **{name: seen.get(name) for name in _OPTIONS}}
    return {"text": text, **{name: value for name, value in around.items() if value is not None}}


def parse_mode(written: Any) -> ParseMode:
    """Return how the marks in a text are written, HTML if nothing is said."""
    return ParseMode.MARKDOWN_V2 if str(written or "").casefold() == "markdownv2" else ParseMode.HTML


def _joined(seen: Mapping[str, Any]) -> str:
    """Return the text with `additional_text` behind it (C-45)."""
    return "".join(str(seen[name]) for name in ("text", "additional_text") if seen.get(name) is not None)


def _keyboard(seen: Mapping[str, Any]) -> dict[str, Any]:
    if rows := inline_rows(seen.get("inline")):
        return {"inline": rows}
    if (keys := seen.get("reply")) is None:
        return {}
    asking = contact_labels(keys)
    return {"reply": reply_rows(keys), **({"request_contact": asking} if asking else {})}
