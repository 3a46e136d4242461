"""How a value is written into a text of a parse mode or a URL, so that it stays a value and never is markup. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from core.model.content import ParseMode
from core.model.text.text_entities import escaped

_CODE = {ParseMode.HTML: ("<code>", "</code>"), ParseMode.MARKDOWN_V2: ("`", "`")}


@dataclass(frozen=True, slots=True)
class Escaping:
    """`escape`: a value as the text that shows it. `keeps_backslashes`: whether the parse mode itself removes the
    backslash of `\\{`, so that it must stay in the text. `keeps_whole`: whether a text of one
    placeholder alone is not escaped.
    """

    escape: Callable[[str], str]
    mode: ParseMode = ParseMode.PLAIN
    keeps_whole: bool = False

    @property
    def code(self) -> tuple[str, str]:
        """What is written before and behind code; empty without markup."""
        return _CODE.get(self.mode, ("", ""))

    @property
    def keeps_backslashes(self) -> bool:
        return self.mode is ParseMode.MARKDOWN_V2


PLAIN = Escaping(str)
"""No markup: conditions, ids, addresses, other actions than `send`."""


def _in_url(text: str) -> str:
    """Return a value as a part of a URL. One of dots alone is left out: no encoding keeps `..` from being a folder."""
    return quote(text, safe="", errors="replace") if text.strip(".") else ""


URL = Escaping(_in_url, keeps_whole=True)

HTML = Escaping(partial(escaped, mode=ParseMode.HTML), ParseMode.HTML)

MARKDOWN_V2 = Escaping(partial(escaped, mode=ParseMode.MARKDOWN_V2), ParseMode.MARKDOWN_V2)
