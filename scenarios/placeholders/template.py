"""A text that was parsed once: its literal parts and its placeholders. Pure values.

Made by `parser`, evaluated by `rendering`.
"""

from dataclasses import dataclass
from typing import Any

from scenarios.placeholders.modifiers import Modifier
from scenarios.words import Text


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """A mistake of the author that is visible without values. `offset`: in characters, in the text that was parsed."""

    code: str
    message: Text
    placeholder: str
    offset: int


@dataclass(frozen=True, slots=True)
class Literal:
    """Text between placeholders. `raw`: as written; `plain`: without the backslashes before braces and bars."""

    raw: str
    plain: str


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed text. `whole`: it is one placeholder and nothing else, so the type of its value is kept."""

    parts: "tuple[Literal | Placeholder, ...]"

    @property
    def whole(self) -> "Placeholder | None":
        first = self.parts[0] if len(self.parts) == 1 else None
        return first if isinstance(first, Placeholder) else None

    @property
    def literal(self) -> str | None:
        """The text, if there is no placeholder in it."""
        literals = [part.plain for part in self.parts if isinstance(part, Literal)]
        return "".join(literals) if len(literals) == len(self.parts) else None


@dataclass(frozen=True, slots=True)
class ModifierStep:
    """One modifier of a placeholder.

    `modifier` None: its name is unknown, or in a placeholder itself (then `name` is "" and `parameter` is all of it).
    `parsed`: what the modifier made of its parameter while the text was parsed, if the parameter is literal; a
    ModifierError if it refused it; None if it must be read when the text is rendered.
    """

    name: str
    modifier: Modifier | None
    parameter: Template
    parsed: Any = None


@dataclass(frozen=True, slots=True)
class Placeholder:
    """`{path|step|step}`. `source`: as written. `path` None: nested too deeply to be parsed. `is_quoted`: the path is
    no name of a field, but a text in quotes: `{'2024-12-25'|shift:+1 day}`.
    """

    source: str
    offset: int
    path: Template | None
    steps: tuple[ModifierStep, ...] = ()
    is_quoted: bool = False
