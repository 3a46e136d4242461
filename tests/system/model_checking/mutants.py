"""Mutants of the functions: in each, one call of `redis_call`, `WriteBuffer.write`, `Record.save`, `Record.forget` or
`Record.free` in lua/ is left out.

A statement becomes an empty block. An expression becomes the neutral reply of its command (nothing found).
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core.redis import library
from tests.support.paths import ROOT

LUA = ROOT / "lua"
# The last four buffer a call (lua/shared/modules/write_buffer.lua, record.lua).
CALL = re.compile(r"(?<![\w.])(?<!function )(?:redis_call|WriteBuffer\.write|Record\.(?:save|forget|free))\(")
_STATEMENT = re.compile(r"(^|\bthen|\bdo|\belse|\)|\bend)$")
_GOES_ON = re.compile(r"([=,({+]|\bor|\band|\.\.|\breturn|\bnot)$")
_NEUTRAL = {
    **dict.fromkeys(("GET", "HGET", "ZSCORE"), "false"),
    **dict.fromkeys(("HMGET", "HGETALL", "HKEYS", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZPOPMIN", "XRANGE"), "({})"),
    "TYPE": "({ ok = 'none' })",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One call left out. `file` is relative to lua/; `start` and `end` are offsets in its text."""

    file: str
    line: int
    start: int
    end: int
    text: str
    instead: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.text} → {self.instead}"

    @property
    def place(self) -> str:
        """The line, named as in `Library.origin`."""
        return f"lua/{self.file}:{self.line}"

    def write(self, lua: Path) -> None:
        """Writes the mutant into a copy of lua/."""
        (lua / self.file).write_text(self.body())

    def body(self) -> str:
        """The text of the file without this call."""
        text = (LUA / self.file).read_text()
        return text[: self.start] + self.instead + text[self.end :]

    def restore(self, lua: Path) -> None:
        """Restores the file in the copy."""
        shutil.copy(LUA / self.file, lua / self.file)


def mutants() -> list[Mutant]:
    """All mutants, ordered by file and line."""
    return [mutant for path in sorted(LUA.glob("**/*.lua")) for mutant in _of(path)]


def _of(path: Path) -> Iterator[Mutant]:
    text = path.read_text()
    for found in CALL.finditer(text):
        at = found.start()
        begin = text.rfind("\n", 0, at) + 1
        if not text[begin:at].lstrip().startswith("--"):
            end = _end(text, found.end())
            call = text[at:end]
            instead = "do end" if _is_statement(text, begin, at) else _neutral(call)
            yield Mutant(
                str(path.relative_to(LUA)), text.count("\n", 0, at) + 1, at, end, " ".join(call.split()), instead
            )


def _end(text: str, at: int) -> int:
    """The offset behind the parenthesis that closes the call."""
    depth, quote = 1, ""
    while depth:
        letter = text[at]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += {"(": 1, ")": -1}.get(letter, 0)
        at += 1
    return at


def _is_statement(text: str, begin: int, at: int) -> bool:
    before = text[begin:at].strip()
    if before:
        return _STATEMENT.search(before) is not None
    return _GOES_ON.search(text[:begin].rstrip()) is None


def _neutral(call: str) -> str:
    command = re.search(r"\('(\w+)'", call)
    return _NEUTRAL.get(command[1], "0") if command else "0"


@contextmanager
def mutated(mutant: Mutant, place: Path) -> Iterator[None]:
    """Makes this process use the library of the mutant. `place`: a copy of lua/, made if it does not exist."""
    if not place.exists():
        shutil.copytree(LUA, place)
    mutant.write(place)
    original = library._LUA
    library._LUA = place
    library.current.cache_clear()
    try:
        yield
    finally:
        mutant.restore(place)
        library._LUA = original
        library.current.cache_clear()
