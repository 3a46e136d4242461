"""Reads conditions of Coreness 1.x, such as `$event_text ~ 'help' and not {_cache.count} > 3`, as conditions of Ada.

Pure. A condition that Ada cannot have is refused whole, never translated in part.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from scenarios.bot.data import Data
from scenarios.words import SentenceError, sentence

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'[^']*'|\"[^\"]*\")|(?P<field>\$[\w.\[\]]+|\{[^{}]*\})|(?P<number>-?\d+(?:\.\d+)?)"
    r"|(?P<sign>==|!=|>=|<=|!~|[<>~()\[\],])|(?P<word>[A-Za-z_]+))"
)
_EXISTS = "|exists"
_RULES: Mapping[str, str] = {
    "==": "equals",
    "!=": "not_equals",
    ">": "more_than",
    ">=": "at_least",
    "<": "less_than",
    "<=": "at_most",
    "~": "contains",
    "regex": "regex",
    "in": "in_list",
    "not in": "not_in_list",
}
_CONSTANTS: Mapping[str, Data] = {"true": True, "false": False, "none": None}


class ConditionRefused(SentenceError, ValueError):
    """Ada has no such condition. The message says which part."""


class ConditionField(NamedTuple):
    """A value that is known when the bot runs. `exists`: the condition asks only whether it is there."""

    path: str
    exists: bool = False


def ada_name(name: str) -> str:
    """Return the name of a value: what actions return stands without `_cache` in Ada."""
    return name.strip().removeprefix("$").removeprefix("_cache.")


def condition(text: str) -> dict[str, Data]:
    """Return a value for `when`. Raises ConditionRefused."""
    tokens = _tokens(text)
    found = _either(tokens)
    if tokens:
        raise ConditionRefused(sentence("was_not_expected", token=tokens[0]))
    return found


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConditionRefused(sentence("token_cannot_read", token=text[at:].strip()[:30]))
        tokens.append(match.group().strip())
        at = match.end()
    return tokens


def _either(tokens: list[str]) -> dict[str, Data]:
    found = [_all(tokens)]
    while _take(tokens, "or"):
        found.append(_all(tokens))
    return found[0] if len(found) == 1 else {"any": found}


def _all(tokens: list[str]) -> dict[str, Data]:
    found = [_unit(tokens)]
    while _take(tokens, "and"):
        found.append(_unit(tokens))
    return found[0] if len(found) == 1 else {"all": found}


def _unit(tokens: list[str]) -> dict[str, Data]:
    if _take(tokens, "not"):
        return {"not": _unit(tokens)}
    if len(tokens) > 1 and tokens[1] == "!~":
        tokens[1] = "~"
        return {"not": _comparison(tokens)}
    if _take(tokens, "("):
        found = _either(tokens)
        if not _take(tokens, ")"):
            raise ConditionRefused(sentence("bracket_not_closed"))
        return found
    return _comparison(tokens)


def _comparison(tokens: list[str]) -> dict[str, Data]:
    left = _value(tokens)
    if not isinstance(left, ConditionField):
        raise ConditionRefused(sentence("value_is_compared", value=left if isinstance(left, int) else str(left)))
    sign = "not " if _take(tokens, "not") else ""
    sign += tokens.pop(0).lower() if tokens else ""
    if sign in ("is_null", "not is_null"):
        return {left.path: {"rule": "empty" if sign == "is_null" else "not_empty"}}
    if sign not in _RULES:
        raise ConditionRefused(sentence("comparison_not_known", sign=sign))
    right = _list(tokens) if sign.endswith("in") else _value(tokens)
    if isinstance(right, ConditionField):
        raise ConditionRefused(sentence("compared_with_field", field=left.path, other=right.path))
    if left.exists:
        return {left.path: {"rule": _existence(sign, right)}}
    if right is None:
        return {left.path: {"rule": "empty" if sign == "==" else "not_empty"}}
    return {left.path: {"rule": _RULES[sign], "value": right}}


def _existence(sign: str, right: Data) -> str:
    if sign not in ("==", "!=") or not isinstance(right, bool):
        raise ConditionRefused(sentence("exists_can_only_compared"))
    return "not_empty" if right == (sign == "==") else "empty"


def _list(tokens: list[str]) -> list[Data]:
    closing = {"(": ")", "[": "]"}.get(tokens.pop(0) if tokens else "")
    if closing is None:
        raise ConditionRefused(sentence("needs_list_values"))
    found = []
    while not _take(tokens, closing):
        value = _value(tokens)
        if isinstance(value, ConditionField):
            raise ConditionRefused(sentence("list_has_not_fixed", field=value.path))
        found.append(value)
        _take(tokens, ",")
    return found


def _value(tokens: list[str]) -> Data:
    """Return a ConditionField, or a text, number, bool or None."""
    if not tokens:
        raise ConditionRefused(sentence("value_missing"))
    token = tokens.pop(0)
    if token[0] in "'\"":
        token = token[1:-1].replace("\\\\", "\\")
        return _field(token) if token.startswith("{") and token.endswith("}") else token
    if token[0] in "${":
        return _field(token)
    if token[0].isdigit() or token[0] == "-":
        return float(token) if "." in token else int(token)
    if token.lower() in _CONSTANTS:
        return _CONSTANTS[token.lower()]
    raise ConditionRefused(sentence("neither_field_nor_value", token=token))


def _field(token: str) -> ConditionField:
    name = token.removeprefix("{").removesuffix("}")
    exists = name.endswith(_EXISTS)
    name = name.removesuffix(_EXISTS)
    if "|" in name:
        raise ConditionRefused(sentence("changed_modifiers", field=f"{{{name}}}"))
    return ConditionField(ada_name(name), exists)


def _take(tokens: list[str], word: str) -> bool:
    """Remove `word` if it is the next token; return whether it was."""
    if tokens and tokens[0].lower() == word:
        del tokens[0]
        return True
    return False
