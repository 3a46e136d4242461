"""The actions of a run as lines for a terminal: of a dry run, and of a run that has happened."""

import json
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.bot.button_data import JUMP

_INDENT = " " * 7
_MOST_LINES = 12
"""Of one text."""
_LONGEST = 300
"""Characters of a value."""
_OF_MESSAGE = ("text", "additional_text", "inline", "reply", "keyboard", "keyboard_of_role", "keyboard_version")
"""Fields of a `send` that the message shows, or has no use for."""


def action_lines(
    head: str, message: Mapping[str, Any] | None, given: Mapping[str, Any], results: Mapping[str, Any]
) -> Iterator[str]:
    """Emit what became of an action; the message that it sent, or else what it was given; and what later actions get of
    it. Folded to the terminal.
    """
    yield from folded(head, "")
    yield from message_lines(message) if message else ()
    for name, value in given.items():
        if not message or name not in {*message, *_OF_MESSAGE}:
            yield from value_lines(name, value)
    for name, value in results.items():
        if name != "error":  # the reason shows it
            yield from value_lines(f"→ {name}", value)


def message_lines(message: Mapping[str, Any]) -> Iterator[str]:
    """Emit what a person gets: the text, a line for each row of buttons, and what else the message has."""
    for name, value in message.items():
        if name == "text":
            yield from text_lines(str(value))
        elif name in ("inline", "reply") and value:
            yield from (line for row in value for line in folded(" ".join(map(button, row)), f"{_INDENT}  "))
        else:
            yield from value_lines(name, value)


def button(one: Any) -> str:
    """Return a button, and where it leads unless it sends its own text."""
    if not isinstance(one, Mapping):
        return f"[{one}]"
    goal = one.get("url") or (one["data"].removeprefix(JUMP) if one.get("data", "").startswith(JUMP) else "")
    return f"[{one['text']} → {goal}]" if goal else f"[{one['text']}]"


def text_lines(text: str, mark: str = "»") -> Iterator[str]:
    """Emit a message as it is written, each line behind a mark."""
    lines = text.splitlines() or [""]
    for line in lines[:_MOST_LINES]:
        yield from folded(f"{mark} {line}", _INDENT)
    if len(lines) > _MOST_LINES:
        yield f"{_INDENT}… and {len(lines) - _MOST_LINES} more lines"


def value_lines(name: str, value: Any) -> Iterator[str]:
    """Emit a value in one line, folded; a long one is cut."""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(shown.split())
    yield from folded(f"{name}: {textwrap.shorten(line, _LONGEST, placeholder=' …') if line else '(empty)'}", _INDENT)


def folded(line: str, indent: str) -> list[str]:
    """Return the line in the width of the terminal. Its own spaces at the beginning stay."""
    width = max(shutil.get_terminal_size().columns, 40)
    return textwrap.wrap(
        line, width, initial_indent=indent, subsequent_indent=f"{_INDENT}  ", break_on_hyphens=False
    ) or [indent]
