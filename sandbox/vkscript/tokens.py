"""Cuts a program into tokens. Whatever VKScript does not know fails here, U+2028 and U+2029 included."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.vkscript.errors import CompileError

_PLAIN = r"\\\x00-\x1f\u2028\u2029"  # what may not stand in a string as it is
_TOKEN = re.compile(
    rf"""
      (?P<space>(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)+)
    | (?P<number>(?:0x[0-9a-fA-F]{{1,15}}|\d{{1,18}}(?:\.\d{{1,18}})?(?:[eE][+-]?\d{{1,2}})?))
    | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    | (?P<string>"[^"{_PLAIN}]*(?:\\[^{_PLAIN[2:]}][^"{_PLAIN}]*)*"|'[^'{_PLAIN}]*(?:\\[^{_PLAIN[2:]}][^'{_PLAIN}]*)*')
    | (?P<sign>@\.|==|!=|<=|>=|&&|\|\||<<|>>|[-+*/%<>!=(){{}}\[\],;:.&|])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a program."""

    kind: str  # "number" | "name" | "string" | "sign" | "end"
    text: str
    line: int


def tokens(code: str) -> Iterator[Token]:
    """Yield the tokens and an end; raises CompileError at the first letter that fits none."""
    place, line = 0, 1
    while place < len(code):
        found = _TOKEN.match(code, place)
        if found is None:
            raise CompileError(f"unexpected {code[place]!a}", line)
        if found.lastgroup not in (None, "space"):
            yield Token(found.lastgroup or "", found[0], line)
        line += found[0].count("\n")
        place = found.end()
    yield Token("end", "end of code", line)


def number(token: Token) -> int | float:
    """Return the value of a number token."""
    if token.text.startswith("0x"):
        return int(token.text, 16)
    return float(token.text) if set(token.text) & set(".eE") else int(token.text)


def string(token: Token) -> str:
    """Return the value of a string token; halves of surrogate pairs are joined, lone ones become U+FFFD."""
    try:
        text: str = json.loads(token.text)  # the quick way for what a JSON writer made
    except ValueError:
        text = _ESCAPE.sub(_unescaped, token.text[1:-1])
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    return chr(int(code, 16)) if code else _LETTERS.get(letter, letter)
