"""Texts and lists: case, length, cutting, regular expressions, bullets, commas, mentions."""

from collections.abc import Callable, Mapping
from functools import partial

from scenarios.bot.data import Data
from scenarios.bot.patterns import Pattern, PatternTimeout
from scenarios.placeholders.modifiers.table import ModifierError, count_from, modifier, one_of, pattern_from, words_from
from scenarios.placeholders.values import as_number, as_text, is_empty, is_list
from scenarios.words import sentence


@modifier("upper")
def upper(value: Data) -> str:
    """In upper case."""
    return as_text(value).upper()


@modifier("lower")
def lower(value: Data) -> str:
    """In lower case."""
    return as_text(value).lower()


@modifier("title")
def title(value: Data) -> str:
    """Each word with an upper-case letter first."""
    return as_text(value).title()


@modifier("capitalize")
def capitalize(value: Data) -> str:
    """The first letter in upper case, all others in lower case."""
    return as_text(value).capitalize()


_CASES = {"upper": upper, "lower": lower, "title": title, "capitalize": capitalize}


@modifier("case", "t", partial(one_of, _CASES))
def case(value: Data, change: Callable[[Data], str]) -> str:
    """As the modifier `t`: upper, lower, title or capitalize. For a `t` in a placeholder: `{x|case:{t}}`."""
    return change(value)


@modifier("length", sees_null=True)
def length(value: Data) -> int:
    """The number of elements of a list, otherwise of characters; 0 if there is no value."""
    return len(value) if is_list(value) or isinstance(value, dict) else len(as_text(value))


@modifier("truncate", "n", count_from)
def truncate(value: Data, limit: int) -> str:
    """At most `n` characters; what is cut ends with `...`, which counts: `truncate:10` keeps 7."""
    text = as_text(value)
    if len(text) <= limit:
        return text
    return text[: limit - 3] + "..." if limit > 3 else text[:limit]


@modifier("regex", "p", pattern_from)
def regex(value: Data, pattern: Pattern) -> str:
    """Returns the match of the regular expression `p`: group 1 if it has one, else the match; nothing if it does not
    match.
    """
    try:
        found = pattern.search(as_text(value))
    except PatternTimeout as error:
        raise ModifierError(error.said) from None
    return "" if found is None else found[:2][-1]


@modifier("tags")
def tags(value: Data) -> str:
    """Names as mentions: `@a @b`. A name that begins with `@` does not get a second one."""
    return " ".join(f"@{name}" for name in (text.strip().lstrip("@") for text in _elements(value)) if name)


@modifier("list")
def bullets(value: Data) -> str:
    """One line per element: `• a`."""
    return "\n".join(f"• {text}" for text in _elements(value))


@modifier("comma")
def comma(value: Data) -> str:
    """The elements with commas: `a, b`."""
    return ", ".join(_elements(value))


@modifier("sort", "f")
def sort(value: Data, field: str) -> list[Data]:
    """The elements in the order of their field `f`, from the largest with `-f`: `{rows|sort:-points}`. Numbers come in
    their order and before texts, elements without the field last.
    """
    name = field.strip().removeprefix("-")
    there = [one for one in _list(value) if not is_empty(_field(one, name))]
    ordered = sorted(there, key=lambda one: _order(_field(one, name)), reverse=field.strip().startswith("-"))
    return [*ordered, *(one for one in _list(value) if is_empty(_field(one, name)))]


@modifier("first", "n", count_from)
def first(value: Data, most: int) -> list[Data]:
    """The first `n` elements of a list."""
    return _list(value)[:most]


@modifier("columns", "a,b", words_from)
def columns(value: Data, names: tuple[str, ...]) -> list[Data]:
    """Of each element its fields `a,b` as a text, `Anna, 3`: `{rows|columns:name,points|list}`."""
    return [", ".join(as_text(_field(one, name)) for name in names) for one in _list(value)]


@modifier("keys")
def keys(value: Data) -> list[Data]:
    """The keys of a mapping, as a list."""
    if not isinstance(value, Mapping):
        raise ModifierError(sentence("is_not", name=repr(as_text(value)), text=sentence("mapping")))
    return list(value)


@modifier("expand")
def expand(value: Data) -> Data:
    """As an element of a list, the lists in the value instead of the value: `inline: ["{rows|expand}", {Назад: menu}]`
    has the rows of a keyboard that a value brings. Elsewhere the value stays as it is.
    """
    return value  # `rendering.render_all` puts the lists in


def _list(value: Data) -> list[Data]:
    if not is_list(value):
        raise ModifierError(sentence("is_not", name=repr(as_text(value)), text=sentence("list")))
    return list(value)


def _field(element: Data, name: str) -> Data:
    return element.get(name, "") if isinstance(element, Mapping) else ""


def _order(value: Data) -> tuple[bool, float, str]:
    number = as_number(value)
    return number is None, 0.0 if number is None else float(number), as_text(value).casefold()


def _elements(value: Data) -> list[str]:
    """Return the elements of a list. Any other value counts as a list of one element, an empty text as none."""
    elements = value if is_list(value) else [value]
    return [as_text(element) for element in elements if not is_empty(element)]
