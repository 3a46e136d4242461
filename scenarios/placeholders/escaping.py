"""How a value is written into a text of a parse mode, so that it shows as it is and never as markup. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from core.model.content import ParseMode
from core.model.text.text_entities import escaped


@dataclass(frozen=True, slots=True)
class Escaping:
    """`escape`: a value as the text that shows it. `keeps_backslashes`: whether the parse mode itself removes the
    backslash of `\\{`, so that it must stay in the text.
    """

    escape: Callable[[str], str]
    mode: ParseMode = ParseMode.PLAIN

    @property
    def keeps_backslashes(self) -> bool:
        return self.mode is ParseMode.MARKDOWN_V2


PLAIN = Escaping(str)
"""No markup: conditions, ids, addresses, other actions than `send`."""

HTML = Escaping(partial(escaped, mode=ParseMode.HTML), ParseMode.HTML)

MARKDOWN_V2 = Escaping(partial(escaped, mode=ParseMode.MARKDOWN_V2), ParseMode.MARKDOWN_V2)
