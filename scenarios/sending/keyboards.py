"""Buttons: an author's `inline` and `reply` rows → buttons with what a press sends (C-08, C-09, C-41). Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.bot.button_data import is_turn, jump_data
from scenarios.bot.button_text import normalise
from scenarios.schema.types import REQUEST_CONTACT

Button = Mapping[str, str]
"""`text`, and either `data` (what the callback event has) or `url`."""

_ADDRESS = re.compile(r"(https?|tg|mailto)://?\S+", re.IGNORECASE)


def inline_rows(rows: Any) -> list[list[Button]]:
    """Return the buttons below a message. A text sends its normalised text; a mapping leads to a scenario or an
    address."""
    return [list(_buttons(row)) for row in _listed(rows) if row]


def reply_rows(rows: Any) -> list[list[str]]:
    """Return the texts of the keyboard in place of the person's own; an empty list removes it."""
    return [[label for label, _ in _labels(row)] for row in _listed(rows) if row]


def contact_labels(rows: Any) -> list[str]:
    """Return the texts of the buttons of such a keyboard that ask for the person's contact."""
    return [label for row in _listed(rows) for label, goal in _labels(row) if goal == REQUEST_CONTACT]


def _labels(row: Any) -> Iterator[tuple[str, str]]:
    """Emit the text of each button, and what it does besides writing its text, or ""."""
    for item in _listed(row):
        if isinstance(item, Mapping):
            yield from ((str(label), str(goal)) for label, goal in item.items())
        else:
            yield str(item), ""


def _buttons(row: Any) -> Iterator[Button]:
    for item in _listed(row):
        if isinstance(item, Mapping):
            yield from (_leading(str(label), str(goal)) for label, goal in item.items())
        else:
            yield {"text": str(item), "data": normalise(str(item))}


def _leading(label: str, goal: str) -> Button:
    if _ADDRESS.fullmatch(goal):
        return {"text": label, "url": goal}
    if is_turn(goal):
        return {"text": label, "data": goal}
    return {"text": label, "data": jump_data(goal)}


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
