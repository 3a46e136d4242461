"""Conditions, replacements, and what concerns markup: `raw`, `code`."""

from scenarios.bot.data import Data
from scenarios.placeholders.modifiers.table import modifier, words_from
from scenarios.placeholders.values import as_text, is_empty, is_true


@modifier("equals", "v", as_text, sees_null=True)
def equals(value: Data, other: str) -> bool:
    """Whether the value, as a text, is `v`. Booleans are `true` and `false` in any case."""
    return _same(value, other)


@modifier("in_list", "a,b", words_from, sees_null=True)
def in_list(value: Data, others: tuple[str, ...]) -> bool:
    """Whether the value equals one of `a,b`, or of the elements of a list: `{role|in_list:{roles}}`."""
    return any(_same(value, other) for other in others)


def _same(value: Data, other: str) -> bool:
    return as_text(value).lower() == other.lower() if isinstance(value, bool) else as_text(value) == other


@modifier("true", sees_null=True)
def true(value: Data) -> bool:
    """Whether the value is true: not missing, null, 0, empty, nor the text "false"."""
    return is_true(value)


@modifier("exists", sees_null=True)
def exists(value: Data) -> bool:
    """Whether there is a value: not missing, null or an empty text."""
    return not is_empty(value)


@modifier("is_null", sees_null=True)
def is_null(value: Data) -> bool:
    """Whether there is no value: missing, null, an empty text, or the text "null" in any case."""
    return is_empty(value) or (isinstance(value, str) and value.lower() == "null")


@modifier("value", "r", sees_null=True, chooses=True)
def value_if_true(value: Data, result: Data) -> Data:
    """`r` if the value is true, otherwise nothing: `{role|equals:admin|value:Да|fallback:Нет}`."""
    return result if is_true(value) else ""


@modifier("fallback", "v", sees_null=True, chooses=True)
def fallback(value: Data, replacement: Data) -> Data:
    """`v` if the value is missing, null or an empty text. 0 and false are values."""
    return replacement if is_empty(value) else value


@modifier("raw")
def raw(value: Data) -> Data:
    """The value of a person without escaping: its `<b>` becomes markup. Only for values that you trust."""
    return value


@modifier("code")
def code(value: Data) -> Data:
    """In the mark of code of the parse mode, `<code>a</code>` in HTML; each element of a list in its own, on its own
    line. Without a parse mode, as in the labels of buttons, the value stays as it is.
    """
    return value  # `rendering` adds the mark, because it knows the parse mode
