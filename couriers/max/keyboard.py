"""Buttons of a message as a keyboard of MAX. Pure.

MAX has no keyboard in place of the person's own: a row of texts is a row of buttons of type `message`, each of which
writes its text as the person, or of type `request_contact`. Rows that are too long are continued in the next row.
Source: dev.max.ru, "keyboard".
"""

from collections.abc import Iterator, Sequence
from typing import Any

from core.courier import Button, Content, KeyboardLimits
from providers.max import keyboards

MOST_ROWS = 30
LONGEST_PAYLOAD, LONGEST_LINK = 1024, 2048
_WIDTH, _WIDTH_OF_WIDE = 7, 3
"""Buttons in a row; fewer if one of them is a link or asks for a contact."""

Json = dict[str, Any]


LIMITS = KeyboardLimits(
    inline_rows=MOST_ROWS,
    inline_buttons=MOST_ROWS * _WIDTH,
    reply_rows=MOST_ROWS,
    reply_buttons=MOST_ROWS * _WIDTH,
    width=_WIDTH,
    label=keyboards.LONGEST_LABEL,
    data=2**16,
    data_bytes=LONGEST_PAYLOAD,
)
"""What a preview knows of it; a row with a link holds less."""


def can_show(content: Content) -> bool:
    """Return whether a keyboard can have these buttons."""
    return _fits(list(_rows(content.inline))) and _fits([[Button(one, one) for one in row] for row in _texts(content)])


def keyboard(content: Content) -> Json | None:
    """Return the attachment with the buttons, None for none. Buttons below the message win."""
    if content.inline:
        return keyboards.keyboard([[_button(one) for one in row] for row in _rows(content.inline)])
    texts = list(_texts(content))
    return keyboards.keyboard([[_key(one, content) for one in row] for row in texts]) if texts else None


def _rows(rows: Sequence[Sequence[Button]]) -> Iterator[Sequence[Button]]:
    for row in rows:
        width = _WIDTH_OF_WIDE if any(one.url for one in row) else _WIDTH
        yield from (row[start : start + width] for start in range(0, len(row), width))


def _texts(content: Content) -> Iterator[Sequence[str]]:
    for row in content.reply or ():
        width = _WIDTH_OF_WIDE if any(one in content.request_contact for one in row) else _WIDTH
        yield from (row[start : start + width] for start in range(0, len(row), width))


def _fits(rows: Sequence[Sequence[Button]]) -> bool:
    return len(rows) <= MOST_ROWS and all(_is_button(one) for row in rows for one in row)


def _is_button(button: Button) -> bool:
    """Return whether MAX takes a button as it is."""
    if not 1 <= len(button.text) <= keyboards.LONGEST_LABEL:
        return False
    return len(button.url) <= LONGEST_LINK if button.url else len(button.data) <= LONGEST_PAYLOAD


def _key(label: str, content: Content) -> Json:
    return keyboards.contact(label) if label in content.request_contact else keyboards.writing(label)


def _button(button: Button) -> Json:
    return keyboards.link(button.text, button.url) if button.url else keyboards.callback(button.text, button.data)
