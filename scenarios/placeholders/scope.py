"""The inputs and the results of rendering a text, and how a value is written into a text of a parse mode or a URL, so
that it stays a value and never is markup. Pure.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from urllib.parse import quote

from core.model.content import ParseMode
from core.model.text.text_entities import escaped
from scenarios.bot.data import Data
from scenarios.words import Text

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
        """The marks before and behind code; empty without markup."""
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


MAX_DEPTH = 10
"""Placeholders in placeholders and in values, unless a setting says otherwise."""


@dataclass(frozen=True, slots=True)
class Scope:
    """`values`: the fields that the text can name. `from_person`: the fields whose values a person has written; these
    are escaped and never parsed for placeholders. A field in a mapping counts with the mapping.
    `marked_up`: those of them that are ready for the parse mode, and not escaped if no modifier changes them.
    `keeps_unknown`: whether a text in which nothing gets a value stays as it is written, also its backslashes.
    `escaping`: that of the text's parse mode. `zone`: for dates; None shows them as they are, and seconds in UTC.
    `shown_in`: the zone in which people read the text: a moment in ISO 8601 stands in it as `15.12.2026 12:00`. None
    leaves moments as they are.
    """

    values: Mapping[str, Data]
    from_person: Container[str] = frozenset()
    escaping: Escaping = PLAIN
    zone: tzinfo | None = None
    max_depth: int = MAX_DEPTH
    marked_up: Container[str] = frozenset()
    keeps_unknown: bool = False
    shown_in: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class RenderWarning:
    """A fault in one placeholder; the rest of the text is unharmed. `placeholder`: as written. `offset`: of the
    outermost placeholder, in characters. `path`: of the text in what was rendered (`inline.0.1`), "" for a single text.

    Codes: MODIFIER_UNKNOWN, MODIFIER_FAILED, TOO_DEEP, TOO_MANY.
    """

    code: str
    message: Text
    placeholder: str
    offset: int
    path: str = ""


@dataclass(frozen=True, slots=True)
class Rendered:
    """`value`: of the placeholder's type if the text is one whole placeholder, otherwise a text.
    `from_person`: whether something of it was written by a person; as a field it belongs to `Scope.from_person`.
    """

    value: Data
    warnings: tuple[RenderWarning, ...] = ()
    from_person: bool = False
