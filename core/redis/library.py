"""The library of functions that runs in the server: built from the files of lua/, one for each version of Ada.

    lua/<area>/functions/<name>.lua   one function of the server. The file begins with a parsed header and returns it:

        -- claim: what it does in one line
        -- ARGV    tube, owner, limit:int, lease_ms:int, ids:rest
        -- RETURNS …
        -- EVENTS  …
        -- INVARIANT …

    lua/<area>/modules/<name>.lua     a module: `function Lane.move_up(tube, lane)` in lane.lua. What other files do
                                      not use is local to its file. The order of the modules does not matter.

`ARGV` is the list of the parameters, and of the arguments in Python. `ARGV packed: …` means that all arguments travel
as one word of MessagePack, with their types; a list among them arrives as a table. One word of the protocol costs the
caller as much as ten in MessagePack.

Every file also gets `shard` (the tag, `{0}`), `now` (milliseconds of the server's clock plus the caller's
`clock_offset`, 0 outside tests), `clock` (the reply of TIME), `redis_call` and `redis_pcall`, the keys
(`Key.task(id)`, from `core.redis.keys`) and the constants (`core.redis.constants`). A module that keeps state during a
call has a function `begin`, which resets it: the state of a call that failed is forgotten at the next.

The names of functions are global on a server. The library is called `ada_<version>` and its functions
`ada_<version>_<name>`, where the version is a hash of the text: two versions of Ada do not meet.
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
_HEADER = re.compile(r"^-- ([A-Z]+)\s+(.*)$")
_RETURNED = re.compile(r"^return function\((.*)\)$", re.MULTILINE)
_TYPES = {"int": "tonumber({0})", "json": "cjson.decode({0})", "str": "{0}"}

# The arguments before the function's own: the shard tag and the clock offset.
_FIXED = 2
_PACKED = "packed: "
pack = msgspec.msgpack.Encoder().encode
# A line of the library and the place it comes from.
Line = tuple[str, str]

# Functions that only read or free memory. They may run when the server's memory is full.
DRAINS = frozenset(
    {
        *(
            "claim",
            "settle",
            "turn",
            "extend",
            "release",
            "suspend",
            "wake",
            "throttle",
            "learn_rate",
            "reserve_call",
            "release_timer",
            "note_primary",
            "cancel",
            "cancel_scheduled",
            "cancel_tasks",
            "bury",
            "resume",
        ),
        *("record_report", "record_late", "read_history", "read_quota", "return_quota"),
        *("delete_user", "delete_collection", "remove_member", "disown"),
        *("write_import", "abort_import", "withdraw_link", "forget_sign_ins", "keep_uploads", "delete_upload"),
    }
)

# Functions that only read, or whose writes a worker derives again. No caller outside is sent their success.
# All others return, with durability `replica`, when a replica has what they wrote (docs/decisions/0177).
UNACKNOWLEDGED = frozenset(
    {
        # Workers repeat what the lost primary alone knew: attempts, outcomes, notes for better answers.
        *("claim", "settle", "turn", "extend", "release", "suspend", "wake", "notify_end"),
        *("note_primary", "release_timer", "throttle", "learn_rate", "reserve_call", "record_late"),
        *("mark_read", "note_references", "note_received", "note_mailed", "keep_id", "keep_uploads"),
        *("take_quota", "return_quota", "reserve", "ask_wave", "journal_import", "write_action"),
        *("record_attempt", "advance_events", "claim_answer", "count_refused_reply"),
        # An iteration of a job, or a run of a scenario, repeats its steps.
        *("check_attempt", "end_attempt", "end_iteration", "count_loss", "drop_jobs", "take_signal"),
        *("write_step", "write_unit", "write_line", "write_own_state", "forget_intent"),
        *("take_slots", "extend_slots", "release_slots", "take_turn", "refuse_calls"),
        *("begin_run", "save_run", "park_run", "drop_run", "drop_runs", "meet_person", "remember_step", "set_state"),
        # A person begins to sign in again.
        *("begin_sign_in", "request_sign_in", "confirm_sign_in", "request_link"),
        *("read_history", "read_quota", "find_recipient", "find_received", "view_tasks", "view_lanes", "read_events"),
    }
)
# Prefix of the functions that only read. The server refuses their writes.
READS = "audit_"
# Prefix of the repairs of an audit, which may run without a replica.
REPAIRS = "repair_"

# What Lua and the server define as globals, as locals of the library: a local is found faster. They are not there while
# the library is loaded.
_GLOBALS = (
    *("redis.call", "redis.pcall", "cjson", "cmsgpack", "math", "string", "table"),
    *("error", "ipairs", "next", "pairs", "pcall", "select", "tonumber", "tostring", "type", "unpack"),
)
_LOCALS = ", ".join(name.replace("redis.", "redis_") for name in _GLOBALS)
_CALL = ("shard", "clock", "now")

# The names that every file may use, besides the modules.
PROVIDED = (*_LOCALS.split(", "), *_CALL, *CONSTANTS)


@dataclass(frozen=True, slots=True)
class Argument:
    """`kind`: str, int, json, or rest (all that follow, as a Lua table)."""

    name: str
    kind: str

    def lua(self, n: int) -> str:
        """Return the expression that reads it from the n-th argument of the call."""
        return f"rest(args, {n})" if self.kind == "rest" else _TYPES[self.kind].format(f"args[{n}]")


@dataclass(frozen=True, slots=True)
class Function:
    """One function. `registered`: its name on the server."""

    name: str
    registered: str
    purpose: str
    header: Mapping[str, str]
    arguments: tuple[Argument, ...]
    packed: bool

    def words(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Return the arguments in the form that the server gets."""
        return (pack(arguments),) if self.packed else arguments


@dataclass(frozen=True, slots=True)
class Library:
    """`text` is what the server gets; `origin[n]` is the file and line of its line n+1."""

    name: str
    text: str
    origin: tuple[str, ...]
    functions: Mapping[str, Function]

    def where(self, message: str) -> str:
        """Return a server's error message with `user_function:12` replaced by the file and line it came from."""

        def place(found: re.Match[str]) -> str:
            line = int(found[1])
            return self.origin[line - 1] if 0 < line <= len(self.origin) else found[0]

        return re.sub(r"user_function:(\d+)", place, message)


def is_missing(refusal: BaseException) -> bool:
    """Return whether an error reply means that the server lacks the library: it was flushed, or is another server."""
    return "Function not found" in str(refusal)


def is_loaded(refusal: BaseException) -> bool:
    """Return whether an error reply to FUNCTION LOAD means that the library is there: another process was faster."""
    return "already exists" in str(refusal)


def names() -> list[str]:
    return sorted(path.stem for path in _LUA.glob("*/functions/*.lua"))


def is_acknowledged(name: str) -> bool:
    """Return whether a replica must have what the function wrote before its caller goes on."""
    return name not in UNACKNOWLEDGED and not name.startswith((READS, REPAIRS))


def file_of(name: str) -> str:
    """Return the file of a function, relative to lua/, for example `queue/functions/claim.lua`."""
    (path,) = _LUA.glob(f"*/functions/{name}.lua")
    return path.relative_to(_LUA).as_posix()


def modules() -> dict[str, str]:
    """Return the modules by file: `shared/modules/write_buffer.lua` is WriteBuffer."""
    return {path.relative_to(_LUA).as_posix(): _module(path.stem) for path in sorted(_LUA.glob("*/modules/*.lua"))}


def function(name: str) -> Function:
    """Return the function with this name. Raises KeyError if there is none."""
    return current().functions[name]


@cache
def current() -> Library:
    """Return the library of this version of Ada."""
    headers = [_parsed(name, file_of(name)) for name in names()]
    lines = [*_prelude(), *_modules(), *_begin()]
    for header in headers:
        lines += _registered(header)
    version = hashlib.sha1(_text(lines).encode(), usedforsecurity=False).hexdigest()[:10]
    library = f"ada_{version}"
    text = _text([(f"#!lua name={library}", "prelude"), *lines]).replace("ada_VERSION_", f"{library}_")
    functions = {
        one.name: Function(one.name, f"{library}_{one.name}", one.purpose, one.header, one.arguments, one.packed)
        for one in headers
    }
    return Library(library, text, ("prelude", *(origin for _, origin in lines)), functions)


def _parsed(name: str, file: str) -> Function:
    """Return a function with its header. Raises ValueError if its parameters are not the arguments of the header."""
    body = (_LUA / file).read_text()
    header = dict(_header(body))
    purpose = body.split("\n", 1)[0].removeprefix("-- ").split(": ", 1)[1]
    declared = header.get("ARGV", "")
    arguments = tuple(_arguments(declared.removeprefix(_PACKED)))
    parameters = ", ".join(argument.name for argument in arguments)
    if _RETURNED.findall(body) != [parameters]:
        raise ValueError(f"lua/{file} must return one function({parameters}), as its header says")
    return Function(name, f"ada_VERSION_{name}", purpose, header, arguments, declared.startswith(_PACKED))


def _header(body: str) -> Iterable[tuple[str, str]]:
    for line in body.splitlines():
        if not line.startswith("--"):
            return
        if found := _HEADER.match(line):
            yield found[1], found[2].strip()


def _arguments(line: str) -> Iterable[Argument]:
    for item in line.split(","):
        if item.strip():
            name, _, kind = item.strip().partition(":")
            yield Argument(name, kind or "str")


def _module(stem: str) -> str:
    """Return the name of the module in a file: write_buffer is WriteBuffer."""
    return "".join(word.capitalize() for word in stem.split("_"))


def _lines(file: str) -> list[Line]:
    """Return a file's lines without comments and blank lines, each with its place."""
    numbered = enumerate((_LUA / file).read_text().splitlines(), 1)
    return [(line, f"lua/{file}:{n}") for n, line in numbered if line.strip() and not line.lstrip().startswith("--")]


def _text(lines: Iterable[Line]) -> str:
    return "\n".join(line for line, _ in lines)


def _prelude() -> list[Line]:
    """Return what every file may use."""
    tables = ["Key", *modules().values()]
    lines = [
        f"local function globals() return {', '.join(_GLOBALS)} end",
        f"local {_LOCALS}",
        f"local {', '.join(_CALL)}",
        *(lua_constant(name) for name in CONSTANTS),
        f"local {', '.join(tables)} = {', '.join('{}' for _ in tables)}",
        *(key.lua for key in KEYS.values()),
        "local function rest(args, from)",
        "local found = {}",
        "for n = from, #args do found[n - from + 1] = args[n] end",
        "return found",
        "end",
    ]
    return [(line, "prelude") for line in lines]


def _modules() -> list[Line]:
    lines = []
    for file in modules():
        lines += [("do", "prelude"), *_lines(file), ("end", "prelude")]
    return lines


def _begin() -> list[Line]:
    """Return the function that begins every call."""
    text = _text(_modules())
    lines = [
        "local function begin(args)",
        f"if not redis_call then {_LOCALS} = globals() end",
        "shard, clock = args[1], redis_call('TIME')",
        "now = clock[1] * 1000 + math.floor(clock[2] / 1000) + tonumber(args[2])",
        *(f"{module}.begin()" for module in modules().values() if f"function {module}.begin()" in text),
        "end",
    ]
    return [(line, "prelude") for line in lines]


def _registered(one: Function) -> list[Line]:
    """Return the file of a function, and its registration."""
    arguments = [argument.lua(n) for n, argument in enumerate(one.arguments, _FIXED + 1)]
    if one.packed:
        arguments = [f"unpack(cmsgpack.unpack(args[{_FIXED + 1}]))"]
    flag = "'no-writes'" if one.name.startswith(READS) else "'allow-oom'" if one.name in DRAINS else ""
    entry = f"begin(args) return run({', '.join(arguments)})"
    after = (
        "end)()",
        f"local function callback(_, args) {entry} end",
        f"redis.register_function{{ function_name = '{one.registered}', callback = callback, flags = {{ {flag} }} }}",
        "end",
    )
    return [
        ("do local run = (function()", "prelude"),
        *_lines(file_of(one.name)),
        *((line, "prelude") for line in after),
    ]
