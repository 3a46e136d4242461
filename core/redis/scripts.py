"""The Lua scripts: read from files, joined with the shared parts they use, addressed by name.

A script begins with a parsed header:

    -- claim: what it does in one line
    -- ARGV    tube, owner, limit:int, lease_ms:int, ids:rest
    -- USES    task, due                     (files of lua/shared; what these use comes with them)
    -- LATE    release_delivery, tick        (shared functions that most runs do not call: what only they need is
                                              defined inside them, at each call, and costs other runs nothing)
    -- RETURNS …
    -- EVENTS  …
    -- INVARIANT …

The header defines the Lua locals (no `ARGV[3]` in a body) and the order of the Python arguments. `ARGV packed: …` means
that all arguments travel as one word of MessagePack, with their types; a list among them arrives as a table. One word
of the protocol costs the caller as much as ten in MessagePack.

Every script also gets `shard` (the tag, `{0}`) and `now` (milliseconds of the server's clock plus the caller's
`clock_offset`, 0 outside tests). Of the key functions (`task_key(id)`, from `core.redis.keys`), the constants
(`core.redis.constants`) and the shared parts, a script contains only what it uses.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from core.redis.constants import CONSTANTS, lua_constant
from core.redis.keys import KEYS

_LUA = Path(__file__).resolve().parents[2] / "lua"
_SHARED = "shared"
_HEADER = re.compile(r"^-- ([A-Z]+)\s+(.*)$")
_WORD = re.compile(r"\w+")
_KEY_CALL = re.compile(r"\b(\w+)_key\(")
_TYPES = {"int": "tonumber(ARGV[{n}])", "json": "cjson.decode(ARGV[{n}])", "str": "ARGV[{n}]"}

# The arguments before the script's own: the shard tag and the clock offset.
_FIXED = 2
_PACKED = "packed: "
pack = msgspec.msgpack.Encoder().encode
# A line of a script and the place it comes from.
Line = tuple[str, str]
# A definition.
Block = list[Line]

_CLOCK = (
    "local clock = redis.call('TIME')",
    "local now = clock[1] * 1000 + math.floor(clock[2] / 1000) + tonumber(ARGV[2])",
)
# Scripts that only read or free memory. They may run when the server's memory is full (Redis ≥ 7).
DRAINS = frozenset(
    {
        *(
            "claim",
            "settle",
            "extend",
            "release",
            "throttle",
            "learn_rate",
            "reserve_call",
            "release_timer",
            "cancel",
            "cancel_scheduled",
            "cancel_tasks",
            "bury",
        ),
        *("record_report", "read_history", "read_quota"),
        *("delete_user", "delete_group", "delete_supergroup", "remove_member", "remove_from_supergroup", "disown"),
        *("write_import", "abort_import", "withdraw_link"),
    }
)

# Prefix of the scripts that only read. The server refuses their writes (Redis ≥ 7).
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
    """One script. `text` is what the server gets; `origin[n]` is the file and line of its line n+1."""

    name: str
    purpose: str
    header: Mapping[str, str]
    arguments: tuple[Argument, ...]
    packed: bool
    text: str
    origin: tuple[str, ...]
    sha: str

    def words(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """The arguments in the form that the server gets."""
        return (pack(arguments),) if self.packed else arguments

    def where(self, message: str) -> str:
        """A server's error message with `user_script:12` replaced by the file and line it came from."""

        def place(found: re.Match[str]) -> str:
            line = int(found[1])
            return self.origin[line - 1] if 0 < line <= len(self.origin) else found[0]

        return re.sub(r"user_script:(\d+)", place, message)


def names() -> list[str]:
    """The names of all scripts."""
    return sorted(path.stem for path in _LUA.glob("*/*.lua") if path.parent.name != _SHARED)


def file_of(name: str) -> str:
    """The file of a script, relative to lua/, for example `queue/claim.lua`."""
    (path,) = _LUA.glob(f"*/{name}.lua")
    return path.relative_to(_LUA).as_posix()


@cache
def load(name: str, flags: bool = False) -> Script:
    """Read `lua/*/<name>.lua`. `flags`: the server takes a shebang line (Redis ≥ 7, Valkey)."""
    file = file_of(name)
    body = (_LUA / file).read_text()
    header = dict(_header(body))
    purpose = body.split("\n", 1)[0].removeprefix("-- ").split(": ", 1)[1]
    declared = header.get("ARGV", "")
    packed = declared.startswith(_PACKED)
    arguments = tuple(_arguments(declared.removeprefix(_PACKED)))
    own = _lines(file)
    shared = [block for part in _parts(_listed(header.get("USES", ""))) for block in _blocks(_part_lines(part))]
    definitions = _definitions([*_constants(), *shared], own, _listed(header.get("LATE", "")))
    lines = [*_shebang(name, flags), *_prelude(arguments, packed), *definitions, *own]
    text = "\n".join(line for line, _ in lines)
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name, purpose, header, arguments, packed, text, tuple(origin for _, origin in lines), sha)


def _parts(uses: Iterable[str]) -> list[str]:
    """Shared parts with all that they use in turn, each after what it uses."""
    found: dict[str, None] = {}
    for part in uses:
        header = dict(_header((_LUA / _SHARED / f"{part}.lua").read_text()))
        found |= dict.fromkeys(_parts(_listed(header.get("USES", "")))) | {part: None}
    return list(found)


def _part_lines(part: str) -> list[Line]:
    return _lines(f"{_SHARED}/{part}.lua")


def _constants() -> list[Block]:
    return [[(lua_constant(name), "prelude")] for name in CONSTANTS]


def _header(body: str) -> Iterable[tuple[str, str]]:
    for line in body.splitlines():
        if not line.startswith("--"):
            return
        if found := _HEADER.match(line):
            yield found[1], found[2].strip()


def _listed(line: str) -> list[str]:
    return [item for part in line.split(",") if (item := part.strip())]


def _arguments(line: str) -> Iterable[Argument]:
    for item in _listed(line):
        name, _, kind = item.partition(":")
        yield Argument(name, kind or "str")


def _lines(file: str) -> list[Line]:
    """A file's lines without comments and blank lines, each with its place."""
    numbered = enumerate((_LUA / file).read_text().splitlines(), 1)
    return [(line, f"lua/{file}:{n}") for n, line in numbered if line.strip() and not line.lstrip().startswith("--")]


def _definitions(blocks: list[Block], own: list[Line], late: list[str]) -> list[Line]:
    """The keys and shared blocks that the script needs, because every definition costs time at each run. What only a
    function of `late` needs is defined inside that function.
    """
    functions = [block for block in _needed(blocks, own) if _defined(block)[0] in late]
    early = _needed([block for block in blocks if block not in functions], own)
    keys = _keys([*_joined(early), *own])
    placed = [
        _with_its_needs(block, blocks, early, keys) if block in functions else block
        for block in blocks
        if block in functions or block in early
    ]
    return [*keys, *_joined(placed)]


def _with_its_needs(function: Block, blocks: list[Block], early: list[Block], keys: list[Line]) -> list[Line]:
    """A late function with the definitions that only it needs inside its body."""
    head, *body = function
    reached = _needed([block for block in blocks if block is not function], body)
    inner = _joined(block for block in reached if block not in early)
    return [head, *(key for key in _keys([*inner, *body]) if key not in keys), *inner, *body]


def _joined(blocks: Iterable[Block]) -> list[Line]:
    return [line for block in blocks for line in block]


def _keys(lines: Iterable[Line]) -> list[Line]:
    """The key functions that these lines call."""
    called = set(_KEY_CALL.findall(_text(lines)))
    return [(key.lua, "prelude") for key in KEYS.values() if key.name in called]


def _needed(blocks: list[Block], own: list[Line]) -> list[Block]:
    words = set(_WORD.findall(_text(own)))
    kept: list[Block] = []
    for block in reversed(blocks):
        if not words.isdisjoint(_defined(block)):
            kept.insert(0, block)
            words.update(_WORD.findall(_text(block)))
    return kept


def _text(lines: Iterable[Line]) -> str:
    return "\n".join(line for line, _ in lines)


def _blocks(lines: list[Line]) -> Iterable[Block]:
    """The top-level definitions: each begins with `local` in the first column."""
    block: list[Line] = []
    for line in lines:
        if line[0].startswith("local ") and block:
            yield block
            block = []
        block.append(line)
    yield block


def _defined(block: Block) -> list[str]:
    """The names that a definition introduces."""
    names = block[0][0].removeprefix("local function ").removeprefix("local ").split("=")[0].split("(")[0]
    return [name.strip() for name in names.split(",")]


def _shebang(name: str, flags: bool) -> list[Line]:
    if not flags:
        return []
    flag = "no-writes" if name.startswith(READS) else "allow-oom" if name in DRAINS else ""
    return [(f"#!lua flags={flag}".removesuffix(" flags="), "shebang")]


def _prelude(arguments: tuple[Argument, ...], packed: bool) -> list[Line]:
    locals_ = [argument.local(n) for n, argument in enumerate(arguments, _FIXED + 1)]
    if packed:
        names = ", ".join(argument.name for argument in arguments)
        locals_ = [f"local {names} = unpack(cmsgpack.unpack(ARGV[{_FIXED + 1}]))"]
    return [(line, "prelude") for line in ["local shard = ARGV[1]", *_CLOCK, *locals_]]
