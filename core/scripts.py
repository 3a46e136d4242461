"""The Lua files: read, headed, joined and addressed by name.

A script begins with a parsed header:

    -- claim: what it does in one line
    -- ARGV    tube, owner, limit:int, lease_ms:int, ids:rest
    -- USES    now, tick, ready              (files of lua/parts, in this order)
    -- RETURNS …
    -- EVENTS  …
    -- INVARIANT …

From it come the Lua locals (no `ARGV[3]` in a body) and the order of the Python arguments. Every script also gets
`shard` (the tag, `{0}`) and `now` (milliseconds of the server's clock plus the caller's `clock_offset`, 0 outside
tests). Key functions (`task_key(id)`) are generated from `core.keys` for those a script uses.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.keys import KEYS

_LUA = Path(__file__).resolve().parent.parent / "lua"
_HEADER = re.compile(r"^-- ([A-Z]+)\s+(.*)$")
_TYPES = {"int": "tonumber(ARGV[{n}])", "json": "cjson.decode(ARGV[{n}])", "str": "ARGV[{n}]"}

# Before the script's own arguments: the shard tag and the clock offset.
_FIXED = 2
# A line of a script and where it stands.
Line = tuple[str, str]

_CLOCK = (
    "local clock = redis.call('TIME')",
    "local now = clock[1] * 1000 + math.floor(clock[2] / 1000) + tonumber(ARGV[2])",
)
# The scripts that only take work off the server, or read, may run when its memory is full (Redis ≥ 7).
DRAINS = frozenset(
    {"claim", "settle", "extend", "release", "hold", "report", "resign", "cancel", "cancel_tasks", "bury", "read"}
)

# What only reads: the server refuses any write of theirs (Redis ≥ 7).
READS = "audit_"


@dataclass(frozen=True, slots=True)
class Argument:
    """`kind`: str, int, json, or rest (all that follow, as a Lua table)."""

    name: str
    kind: str

    def local(self, n: int) -> str:
        if self.kind == "rest":
            return f"local {self.name} = {{}} for i = {n}, #ARGV do {self.name}[#{self.name} + 1] = ARGV[i] end"
        return f"local {self.name} = {_TYPES[self.kind].format(n=n)}"


@dataclass(frozen=True, slots=True)
class Script:
    """One step. `text` is what the server gets; `origin[n]` says from which file and line its line n+1 came."""

    name: str
    purpose: str
    header: Mapping[str, str]
    arguments: tuple[Argument, ...]
    text: str
    origin: tuple[str, ...]
    sha: str

    def where(self, message: str) -> str:
        """A server's error message with `user_script:12` replaced by the file and line it came from."""

        def place(found: re.Match[str]) -> str:
            line = int(found[1])
            return self.origin[line - 1] if 0 < line <= len(self.origin) else found[0]

        return re.sub(r"user_script:(\d+)", place, message)


def names() -> list[str]:
    """All scripts."""
    return sorted(path.stem for path in _LUA.glob("*.lua"))


@cache
def load(name: str, flags: bool = False) -> Script:
    """Read `lua/<name>.lua`. `flags`: the server takes a shebang line (Redis ≥ 7, Valkey)."""
    body = (_LUA / f"{name}.lua").read_text()
    header = dict(_header(body))
    purpose = body.split("\n", 1)[0].removeprefix("-- ").split(": ", 1)[1]
    arguments = tuple(_arguments(header.get("ARGV", "")))
    uses = [part.strip() for part in header.get("USES", "").split(",") if part.strip()]
    own = _lines(f"{name}.lua")
    lines = [*_needed([_lines(f"parts/{part}.lua") for part in uses], own), *own]
    lines = [*_shebang(name, flags), *_prelude(arguments, lines), *lines]
    text = "\n".join(line for line, _ in lines)
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name, purpose, header, arguments, text, tuple(origin for _, origin in lines), sha)


def _header(body: str) -> Iterable[tuple[str, str]]:
    for line in body.splitlines():
        if not line.startswith("--"):
            return
        if found := _HEADER.match(line):
            yield found[1], found[2].strip()


def _arguments(line: str) -> Iterable[Argument]:
    for item in filter(None, (part.strip() for part in line.split(","))):
        name, _, kind = item.partition(":")
        yield Argument(name, kind or "str")


def _lines(file: str) -> list[Line]:
    """A file's lines without comments and blanks, each with its place."""
    numbered = enumerate((_LUA / file).read_text().splitlines(), 1)
    return [(line, f"lua/{file}:{n}") for n, line in numbered if line.strip() and not line.lstrip().startswith("--")]


def _needed(parts: list[list[Line]], own: list[Line]) -> list[Line]:
    """Of the parts only what the script reaches: every definition costs time at each run."""
    blocks = [block for part in parts for block in _blocks(part)]
    text = "\n".join(line for line, _ in own)
    kept: list[list[Line]] = []
    for block in reversed(blocks):
        if any(re.search(rf"\b{word}\b", text) for word in _defined(block)):
            kept.insert(0, block)
            text += "\n" + "\n".join(line for line, _ in block)
    return [line for block in kept for line in block]


def _blocks(lines: list[Line]) -> Iterable[list[Line]]:
    """Top-level definitions: each begins with `local` in the first column."""
    block: list[Line] = []
    for line in lines:
        if line[0].startswith("local ") and block:
            yield block
            block = []
        block.append(line)
    yield block


def _defined(block: list[Line]) -> list[str]:
    """The names a definition makes."""
    names = block[0][0].removeprefix("local function ").removeprefix("local ").split("=")[0].split("(")[0]
    return [name.strip() for name in names.split(",")]


def _shebang(name: str, flags: bool) -> list[Line]:
    if not flags:
        return []
    flag = "no-writes" if name.startswith(READS) else "allow-oom" if name in DRAINS else ""
    return [(f"#!lua flags={flag}".removesuffix(" flags="), "shebang")]


def _prelude(arguments: tuple[Argument, ...], lines: list[Line]) -> list[Line]:
    text = "\n".join(line for line, _ in lines)
    used = [key.lua for key in KEYS.values() if re.search(rf"\b{key.name}_key\(", text)]
    locals_ = [argument.local(n) for n, argument in enumerate(arguments, _FIXED + 1)]
    return [(line, "prelude") for line in ["local shard = ARGV[1]", *_CLOCK, *locals_, *used]]
