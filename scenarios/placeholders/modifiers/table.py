"""The table of modifiers, and how their parameters are read."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal
from typing import Any, Final, TypeVar, final

from scenarios.bot.data import Data
from scenarios.bot.patterns import Pattern, PatternRefused, compile_pattern
from scenarios.placeholders.values import as_number, as_text, is_list
from scenarios.words import SentenceError, sentence

Parse = Callable[[Data], Any]
"""Parameter → its parsed form, which only the modifier knows."""
Apply = Callable[[Data, Any, tzinfo | None], Any]
"""Value, parsed parameter and time zone → the new value."""


class ModifierError(SentenceError):
    """The modifier cannot work on this value, or with this parameter. The message is for the author."""


@final
class Parameter:
    """A parameter of `fallback` or `value`, passed unrendered: its text is rendered only if it is used."""


PARAMETER: Final = Parameter()


@dataclass(frozen=True, slots=True)
class Modifier:
    """`parameter`: its name on the reference page, "" if there is none. `parse`: checks and converts the parameter.
    `sees_null`: also applied to null and to what is missing. `chooses`: returns its parameter or not; it receives
    PARAMETER in its place, and the parameter may have markup and any type.
    """

    name: str
    parameter: str
    explanation: str
    parse: Parse
    apply: Apply
    sees_null: bool = False
    chooses: bool = False

    @property
    def written(self) -> str:
        """As an author writes it: `truncate:n`, `+n`."""
        colon = ":" if self.parameter and self.name.isidentifier() else ""
        return f"{self.name}{colon}{self.parameter}"


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Data])
MODIFIERS: dict[str, Modifier] = {}


def modifier(
    name: str,
    parameter: str = "",
    parse: Parse = as_text,
    *,
    sees_null: bool = False,
    chooses: bool = False,
    zoned: bool = False,
) -> Callable[[F], F]:
    """Add a function to the table. It takes the value; the parameter, if there is one; the time zone, if `zoned`."""

    def add(function: F) -> F:
        def apply(value: Data, parsed: Any, zone: tzinfo | None) -> Data:
            return function(value, *(parsed,) * bool(parameter), *(zone,) * zoned)

        text = " ".join((function.__doc__ or "").split())
        MODIFIERS[name] = Modifier(name, parameter, text, parse, apply, sees_null, chooses)
        return function

    return add


def number_from(parameter: Data) -> Decimal:
    number = as_number(parameter)
    if number is None:
        raise ModifierError(sentence("is_not", name=repr(as_text(parameter)), text=sentence("number")))
    return number


def count_from(parameter: Data) -> int:
    number = number_from(parameter)
    if number < 0 or number != int(number):
        raise ModifierError(sentence("not_whole_number_from", value=as_text(parameter)))
    return int(number)


def pattern_from(parameter: Data) -> Pattern:
    source = as_text(parameter)
    if not source:
        raise ModifierError(sentence("no_regular_expression"))
    try:
        return compile_pattern(source)
    except PatternRefused as error:
        raise ModifierError(error.said) from None


def words_from(parameter: Data) -> tuple[str, ...]:
    """Return the elements of a list, or of a text with commas."""
    elements = parameter if is_list(parameter) else as_text(parameter).split(",")
    return tuple(as_text(element).strip() for element in elements)


def one_of(choices: dict[str, T], parameter: Data) -> T:
    name = as_text(parameter).strip()
    if name not in choices:
        raise ModifierError(sentence("value_is_none_of", value=name, words=", ".join(choices)))
    return choices[name]
