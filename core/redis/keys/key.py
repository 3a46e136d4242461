"""The description of a key: its name, pattern, type, lifetime and content."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache


class Lifetime(StrEnum):
    """The event or step that removes a key."""

    TTL = "its own time to live"
    RETENTION = "the retention of its delivery"
    WORK = "the end of its work"
    FOREVER = "nothing: it stays, bounded in size"


@dataclass(frozen=True, slots=True)
class Key:
    """One kind of key. `pattern`: `{s}` is the shard tag, `<name>` a part."""

    name: str
    pattern: str
    type: str
    lifetime: Lifetime
    what: str

    @property
    def parts(self) -> list[str]:
        return re.findall(r"<(\w+)>", self.pattern)

    def at(self, shard: int, *parts: str) -> str:
        """Return the key itself."""
        return _template_of(self.pattern) % ((shard, *parts) if "{s}" in self.pattern else parts)

    @property
    def lua(self) -> str:
        """The Lua function that builds the key; the shard tag is in the variable `shard`."""
        pieces = re.split(r"(\{s\}|<\w+>)", self.pattern)
        expression = " .. ".join(_lua_piece(piece) for piece in pieces if piece)
        return f"function Key.{self.name}({', '.join(self.parts)}) return {expression} end"

    def matches(self, key: str) -> bool:
        """Return whether a key found on a server is of this kind."""
        return regex_of(self.pattern).fullmatch(key) is not None


def _lua_piece(piece: str) -> str:
    if piece == "{s}":
        return "shard"
    return piece[1:-1] if piece.startswith("<") else f"'{piece}'"


@cache
def _template_of(pattern: str) -> str:
    """Return the pattern with a place for the shard and for each part: a worker builds dozens of keys at a time."""
    return re.sub(r"<\w+>", "%s", pattern.replace("%", "%%").replace("{s}", "{%d}"))


@cache
def regex_of(pattern: str) -> re.Pattern[str]:
    pieces = re.split(r"(\{s\}|<\w+>)", pattern)
    return re.compile("".join(_regex_piece(piece) for piece in pieces), re.DOTALL)


def _regex_piece(piece: str) -> str:
    if piece == "{s}":
        return r"\{\d+\}"
    return r".+" if piece.startswith("<") else re.escape(piece)
