"""The inputs and the results of rendering a text. Pure values."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import tzinfo

from scenarios.bot.data import Data
from scenarios.placeholders.escaping import PLAIN, Escaping
from scenarios.words import Text

MAX_DEPTH = 10
"""Placeholders in placeholders and in values, unless a setting says otherwise."""


@dataclass(frozen=True, slots=True)
class Scope:
    """`values`: the fields that the text can name. `from_person`: the fields whose values a person has written; these
    are escaped and never parsed for placeholders. A field in a mapping counts with the mapping.
    `marked_up`: those of them that are ready for the parse mode, and not escaped if no modifier changes them.
    `keeps_unknown`: whether a text in which nothing gets a value stays as it is written, also its backslashes.
    `escaping`: that of the text's parse mode. `zone`: for dates; None shows them as they are, and seconds in UTC.
    """

    values: Mapping[str, Data]
    from_person: Container[str] = frozenset()
    escaping: Escaping = PLAIN
    zone: tzinfo | None = None
    max_depth: int = MAX_DEPTH
    marked_up: Container[str] = frozenset()
    keeps_unknown: bool = False


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
