"""Buttons of a message as a keyboard of MAX. Pure.

MAX has no keyboard in place of the person's own: a row of texts is a row of buttons of type `message`, each of which
writes its text as the person, or of type `request_contact`. Rows that are too long are continued in the next row.
Source: dev.max.ru, "keyboard".
"""

from typing import Any

from couriers.max import buttons
from couriers.sending import Button, Content, KeyboardLimits

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
    label=buttons.LONGEST_LABEL,
    data=2**16,
    data_bytes=LONGEST_PAYLOAD,
    wide=_WIDTH_OF_WIDE,
    link=LONGEST_LINK,
)


def keyboard(content: Content) -> Json | None:
    """Return the attachment with the buttons, None for none. Buttons below the message win."""
    if content.inline:
        return buttons.keyboard([[_button(one) for one in row] for row in LIMITS.rows(content.inline)])
    texts = LIMITS.rows(content.reply or (), content.request_contact)
    return buttons.keyboard([[_key(one, content) for one in row] for row in texts]) if texts else None


def _key(label: str, content: Content) -> Json:
    return buttons.contact(label) if label in content.request_contact else buttons.writing(label)


def _button(button: Button) -> Json:
    return buttons.link(button.text, button.url) if button.url else buttons.callback(button.text, button.data)
