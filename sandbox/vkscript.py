"""The part of VKScript that couriers generate: one `return` of literals, arrays, objects and API calls.

    return [API.messages.send({"peer_ids":[1,2],"message":"hello","random_id":7}), API.users.get()];

Everything else (variables, operators, loops, functions) is refused as VK refuses code that does not compile. As on VK,
a line separator (U+2028, U+2029) must be written as an escape. Source: dev.vk.com, method execute.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | list["Value"] | dict[str, "Value"] | None
Call: TypeAlias = Callable[[str, Mapping[str, Value]], Value]

MAX_CALLS = 25
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n]+)
    | (?P<number>-?\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,2})?(?![A-Za-z0-9_.]))
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<string>"(?:[^"\\\x00-\x1f\u2028\u2029]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")
    | (?P<sign>[\[\]{}(),:;.])
    """,
    re.VERBOSE,
)


class CompileError(Exception):
    """The code does not compile (VK's error 12)."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(f"Unable to compile code: {reason} in line {line}")


class RunError(Exception):
    """The code failed while it ran (VK's error 13)."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Runtime error occurred during code invocation: {reason}")


def execute(code: str, call: Call) -> Value:
    """Compile and run the code; `call` makes each API call, in the order of the code, and returns its response.

    Raises CompileError before the first call, RunError at the 26th, and whatever `call` raises.
    """
    try:
        expression = _Parser(code).program()
    except RecursionError:  # brackets can be nested deeper than Python's stack
        raise CompileError("too deep nesting", 1) from None
    return _Run(call).value(expression)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # "number" | "name" | "string" | "sign" | "end"
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class _ApiCall:
    method: str
    parameters: dict[str, "_Expression"]


_Expression: TypeAlias = bool | int | float | str | list["_Expression"] | dict[str, "_Expression"] | _ApiCall | None


def _tokens(code: str) -> Iterator[_Token]:
    """Yield the tokens and an end token. Raises CompileError at the first character that fits none."""
    position, line = 0, 1
    while position < len(code):
        found = _TOKEN.match(code, position)
        if found is None:
            raise CompileError(f"unexpected {code[position]!a}", line)
        if found.lastgroup not in (None, "space"):
            yield _Token(found.lastgroup or "", found[0], line)
        line += found[0].count("\n")
        position = found.end()
    yield _Token("end", "end of code", line)


class _Parser:
    """Recursive descent: one method for each rule of the grammar."""

    def __init__(self, code: str) -> None:
        self._tokens = _tokens(code)
        self._next = next(self._tokens)

    def program(self) -> _Expression:
        self._expect("return")
        expression = self._expression()
        self._expect(";")
        if self._next.kind != "end":
            raise self._unexpected()
        return expression

    def _expression(self) -> _Expression:
        if self._accept("["):
            return self._array()
        if self._accept("{"):
            return self._object()
        if self._accept("API"):
            return self._api_call()
        return self._literal()

    def _array(self) -> list[_Expression]:
        items: list[_Expression] = []
        while not self._accept("]"):
            if items:
                self._expect(",")
            items.append(self._expression())
        return items

    def _object(self) -> dict[str, _Expression]:
        fields: dict[str, _Expression] = {}
        while not self._accept("}"):
            if fields:
                self._expect(",")
            name = _string(self._take()) if self._next.kind == "string" else self._name()
            self._expect(":")
            fields[name] = self._expression()
        return fields

    def _api_call(self) -> _ApiCall:
        self._expect(".")
        section = self._name()
        self._expect(".")
        method = f"{section}.{self._name()}"
        self._expect("(")
        parameters = self._object() if self._accept("{") else {}
        self._expect(")")
        return _ApiCall(method, parameters)

    def _literal(self) -> _Expression:
        if self._next.kind == "string":
            return _string(self._take())
        if self._next.kind == "number":
            text = self._take().text
            return float(text) if set(text) & set(".eE") else int(text)
        if self._next.text not in _CONSTANTS:
            raise self._unexpected()
        return _CONSTANTS[self._take().text]

    def _name(self) -> str:
        if self._next.kind != "name":
            raise self._unexpected(", expecting a name")
        return self._take().text

    def _take(self) -> _Token:
        token = self._next
        if token.kind != "end":
            self._next = next(self._tokens)
        return token

    def _accept(self, text: str) -> bool:
        found = self._next.text == text and self._next.kind in ("sign", "name")
        if found:
            self._take()
        return found

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected(f", expecting {text}")

    def _unexpected(self, expected: str = "") -> CompileError:
        return CompileError(f"unexpected {self._next.text[:40]!a}{expected}", self._next.line)


def _string(token: _Token) -> str:
    """Return the value of a string; surrogate pairs are joined, lone surrogates become U+FFFD."""
    text: str = json.loads(token.text)
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Run:
    """Evaluates one program and counts its API calls."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._calls = 0

    def value(self, expression: _Expression) -> Value:
        match expression:
            case _ApiCall():
                return self._call_api(expression)
            case list():
                return [self.value(item) for item in expression]
            case dict():
                return {name: self.value(field) for name, field in expression.items()}
        return expression

    def _call_api(self, call: _ApiCall) -> Value:
        parameters = {name: self.value(field) for name, field in call.parameters.items()}
        self._calls += 1
        if self._calls > MAX_CALLS:
            raise RunError("Too many API calls")
        return self._call(call.method, parameters)
