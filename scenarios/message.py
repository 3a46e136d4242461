"""What a `send` sends: its text and everything around it, from the values that the action sees. Pure."""

from collections.abc import Mapping
from typing import Any

from scenarios.keyboards import inline_rows, reply_rows

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
"""Characters, by Telegram's Bot API; longer texts are cut (C-46)."""

_CUT = "..."
_OPTIONS = (
    *("parse_mode", "message_reply", "callback_edit", "remove", "private_answer"),
    *("exact_message_id", "remove_message_id"),
)

Message = Mapping[str, Any]


def message(seen: Mapping[str, Any]) -> Message | None:
    """`text`, and what else is given: `attachment`, `inline`, `reply`, options. None if nothing can be sent (C-47).

    `inline` wins over `reply`. `reply: []` removes the person's keyboard.
    """
    attachment = seen.get("attachment") or None
    text = cut(_joined(seen), LONGEST_CAPTION if attachment else LONGEST_TEXT)
    if not text.strip() and attachment is None:
        return None
    around = {"attachment": attachment, **_keyboard(seen), **{name: seen.get(name) for name in _OPTIONS}}
    return {"text": text, **{name: value for name, value in around.items() if value is not None}}


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - len(_CUT)] + _CUT


def _joined(seen: Mapping[str, Any]) -> str:
    """The text with `additional_text` behind it (C-45)."""
    return "".join(str(seen[name]) for name in ("text", "additional_text") if seen.get(name) is not None)


def _keyboard(seen: Mapping[str, Any]) -> dict[str, Any]:
    if rows := inline_rows(seen.get("inline")):
        return {"inline": rows}
    return {} if seen.get("reply") is None else {"reply": reply_rows(seen["reply"])}
