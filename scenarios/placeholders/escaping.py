"""How a value is written into a text of a parse mode, so that it shows as it is and never as markup. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass

_MARKDOWN_V2 = re.compile(r"([_*\[\]()~`>#+\-=|{}.!\\])")
"""The characters that Telegram's Bot API names (MarkdownV2 style)."""

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


@dataclass(frozen=True, slots=True)
class Escaping:
    """`escape`: a value as the text that shows it. `keeps_backslashes`: whether the parse mode itself removes the
    backslash of `\\{`, so that it must stay in the text.
    """

    escape: Callable[[str], str]
    keeps_backslashes: bool = False


PLAIN = Escaping(str)
"""No markup: conditions, ids, addresses, other actions than `send`."""

HTML = Escaping(lambda text: text.translate(_HTML))

MARKDOWN_V2 = Escaping(lambda text: _MARKDOWN_V2.sub(r"\\\1", text), keeps_backslashes=True)
