"""Finds the end of a literal, outside and inside placeholders and in regular expressions. Pure.

A backslash before `{`, `}` or (in a placeholder) `|` takes their meaning away; before these, two backslashes are one.
Elsewhere a backslash is itself, so `C:\\dir` needs no doubling. In a regular expression every backslash belongs to it,
and so do `{2,}`, `\\{`, `\\p{L}`, braces and bars in brackets, and bars in parentheses.
"""

import re
from typing import Protocol

from scenarios.placeholders.template import Literal


class Syntax(Protocol):
    """The rules of one place."""

    def stop(self, text: str, start: int) -> int | None:
        """Return where the literal that begins at `start` ends: at a brace or bar with a meaning; None: with the
        text."""

    def literal(self, raw: str, stopped: bool) -> Literal:
        """Return the literal, as written and without its escapes. `stopped`: a brace or bar with a meaning follows."""


class TextSyntax:
    """Text, where each of `stops` has a meaning unless it is escaped."""

    def __init__(self, escaped: str, stops: str) -> None:
        self._special = re.compile(rf"(\\*)([{escaped}])")
        self._escape = re.compile(rf"(\\+)([{escaped}])")
        self._stops = stops

    def stop(self, text: str, start: int) -> int | None:
        found = (one for one in self._special.finditer(text, start) if len(one[1]) % 2 == 0 and one[2] in self._stops)
        return next((one.end() - 1 for one in found), None)

    def literal(self, raw: str, stopped: bool) -> Literal:
        if "\\" not in raw:
            return Literal(raw, raw)
        followed = raw + "{" * stopped  # the backslashes before it are halved like all others
        plain = self._escape.sub(lambda found: found[1][: len(found[1]) // 2] + found[2], followed)
        return Literal(raw, plain[: len(plain) - stopped])


OUTSIDE = TextSyntax("{}", stops="{")
INSIDE = TextSyntax("{}|", stops="{}|")


class RegexSyntax:
    """A regular expression. It counts its parentheses and literal braces, so there is one object per expression."""

    _TOKEN = re.compile(
        r"\\[pPN]\{[^{}]*\}"  # a kind of character
        r"|\\."
        r"|\[\^?\]?(?:\\.|[^\]\\])*\]"  # a set of characters
        r"|(?P<placeholder>\{(?=[^\W\d]))"
        r"|(?P<one>[{}|()])",
        re.DOTALL,
    )

    def __init__(self) -> None:
        self._open = {"(": 0, "{": 0}

    def stop(self, text: str, start: int) -> int | None:
        return next((token.start() for token in self._TOKEN.finditer(text, start) if self._stops(token)), None)

    def _stops(self, token: re.Match[str]) -> bool:
        one = token["one"]
        if one in ("(", "{"):
            self._open[one] += 1
        elif one in (")", "}"):
            opening = "(" if one == ")" else "{"
            self._open[opening] -= 1
            return one == "}" and self._open["{"] < 0
        return bool(token["placeholder"]) or (one == "|" and self._open["("] <= 0)

    def literal(self, raw: str, stopped: bool) -> Literal:
        return Literal(raw, raw)
