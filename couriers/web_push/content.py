"""The notification of a message, as the service worker of the recipients' page reads it (delivery/api/recipient_pages).

A push service takes 4,096 bytes encrypted, so links that do not fit are left out, and then the end of the text. Pure.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from couriers.sending import (
    Button,
    Content,
    Feature,
    KeyboardLimits,
    Limits,
    Message,
    ParseMode,
    cut_text,
)

MOST_BYTES = 3993
"""Of a plain text: RFC 8291 adds 103."""
LONGEST = 1000
"""UTF-16 code units of a text; a browser shows some lines of it, and the page of the message all."""
_CUT = 100
"""Code units that are left out at once."""
_LONGEST_LABEL = 64
KEYBOARD = KeyboardLimits(
    inline_rows=8, inline_buttons=8, reply_rows=0, reply_buttons=0, width=8, label=_LONGEST_LABEL, data=0, link=512
)
"""A notification has links only; a press that answers a question is a link to its page."""
LIMITS = Limits(text=LONGEST, keyboard=KEYBOARD)


class Notification(NamedTuple):
    """`not_shown`: what did not fit."""

    fields: dict[str, Any]
    not_shown: tuple[str, ...]


def notification(message: Message, title: str, answer_url: str, encoded: Any) -> Notification:
    """Return the notification of a message. `answer_url`: what the pages of questions begin with; `encoded`: returns
    the bytes of the fields.
    """
    buttons = [one for row in (message.content or Content()).inline for one in row if one.url]
    text = cut_text(message.text, ParseMode.PLAIN, LONGEST)
    longest, shown = LONGEST, len(buttons)
    while True:
        fields = _fields(message, text, title, answer_url, buttons[:shown])
        if len(encoded(fields)) <= MOST_BYTES or not (shown or longest > _CUT):
            break
        if shown:
            shown -= 1
        else:
            longest -= _CUT
            text = cut_text(message.text, ParseMode.PLAIN, longest)
    is_cut, is_short = shown < len(buttons), text != message.text
    left = (*((Feature.INLINE,) if is_cut else ()), *((Feature.TEXT_END,) if is_short else ()))
    return Notification(fields, left)


def _fields(message: Message, text: str, title: str, answer_url: str, buttons: Sequence[Button]) -> dict[str, Any]:
    """Return the fields. `answers`: a press is posted to the link, and nothing is opened."""
    actions = [
        {"title": one.text, "url": one.url, "answers": one.url.startswith(answer_url) and "?o=" in one.url}
        for one in buttons
    ]
    pages = {one.url.partition("?")[0] for one in buttons if one.url.startswith(answer_url)}
    fields = {
        "title": title,
        "text": text,
        "tag": f"{message.random_id():016x}",
        "receipt": message.report_url,
        "page": pages.pop() if pages else "",
        "settings": message.preferences_url,
        "actions": actions,
    }
    return {name: value for name, value in fields.items() if value}
