"""The linter of the Lua files: luacheck, with the names that `core.redis.library` provides, and numbers of arguments.

A file may use these names, the functions and values of the other modules, and the key functions. It may use no other
global of Lua, and a module changes only its own functions.

A call of a function of a module, of a key function or of a local function has as many arguments as the function has
parameters. The comment above a function names the last parameters that callers may omit: "`due` may be left out". A
last argument that is itself a call may stand for several arguments, `...` and `unpack(...)` for any number. A call of a
function of the server from Python (`store.run("claim", shard, …)`) has as many arguments as its header.
"""

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from core.redis import library
from core.redis.keys import KEYS

MISSING = "luacheck is not installed (Debian, Ubuntu: apt-get install lua-check)"


def is_installed() -> bool:
    return shutil.which("luacheck") is not None


ROOT = Path(__file__).resolve().parents[1]

_CONFIGURATION = """
std = 'lua51'
max_line_length = 140
read_globals = {{ redis = {{ fields = {{ 'log', 'LOG_WARNING' }} }}, {modules} }}
not_globals = {{}}
local provided = {{}}
for _, name in ipairs({{ {provided} }}) do
  provided[name] = true
  if not _G[name] then table.insert(read_globals, name) end
end
for name in pairs(_G) do
  if not provided[name] then table.insert(not_globals, name) end
end
{files}
"""

_HIDDEN = re.compile(r"--[^\n]*|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"")
_DEFINITION = re.compile(r"((?:^--[^\n]*\n)*)^ *(?:local )?function ([\w.]+)\(([^)]*)\)", re.MULTILINE)
_CALL = re.compile(r"(?<![\w.:])((?:[A-Z]\w*\.)?[a-z]\w*)\(")

_CALLERS = ("core", "couriers", "jobs", "scenarios", "bots", "delivery", "cli")
_RUNS = {"run": 2, "run_replicated": 2, "run_for_tenant": 1}
"""The methods of a store that call a function, with the number of their own arguments before those of the function."""


def lint(root: Path) -> bool:
    """Print each warning in lua/ of `root` with its file and line. Returns whether there is none."""
    warnings = [*wrong_calls(root), *wrong_runs(root)]
    for warning in warnings:
        print(warning, flush=True)
    return _luacheck(root) and not warnings


def wrong_calls(root: Path) -> Iterator[str]:
    """Return each call in lua/ of `root` that has another number of arguments than the function has parameters."""
    provided = {f"Key.{key.name}": (len(key.parts), len(key.parts)) for key in KEYS.values()}
    for file in library.modules():
        functions = _parameters((ROOT / "lua" / file).read_text())
        provided |= {name: counts for name, counts in functions.items() if "." in name}
    for path in sorted((root / "lua").rglob("*.lua")):
        known = provided | _parameters(path.read_text())
        for line, name, arguments in _calls(path.read_text()):
            if name in known and not _fits(arguments, *known[name]):
                fewest, most = known[name]
                wanted = str(most) if fewest == most else f"{fewest} to {most}"
                place = f"{path.relative_to(root)}:{line}"
                yield f"{place}: {name} has {wanted} parameters, called with {len(arguments)} arguments"


def wrong_runs(root: Path) -> Iterator[str]:
    """Return each call of a function of the server in the packages of `root` that has another number of arguments than
    the header of the function, or names none. A call with `*arguments` may leave out the rest.
    """
    for path in (path for package in _CALLERS for path in sorted((root / package).rglob("*.py"))):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _RUNS:
                fault = _fault_of(call.args, _RUNS[call.func.attr])
                if fault:
                    yield f"{path.relative_to(root)}:{call.lineno}: {fault}"


def _fault_of(arguments: list[ast.expr], own: int) -> str:
    name = arguments[0] if arguments else None
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return ""
    function = library.current().functions.get(name.value)
    if function is None:
        return f"there is no function {name.value}"
    wanted, has_rest = len(function.arguments), any(one.kind == "rest" for one in function.arguments)
    is_open = any(isinstance(one, ast.Starred) for one in arguments)
    given = sum(not isinstance(one, ast.Starred) for one in arguments[own:])
    if (given < wanted - has_rest and not is_open) or (given > wanted and not has_rest):
        return f"{name.value} has {wanted} arguments, called with {given}"
    return ""


def _parameters(text: str) -> dict[str, tuple[int, int]]:
    """Return the fewest and the most arguments of each function that a file defines; not of those with `...`."""
    found = {}
    for comment, name, parameters in _DEFINITION.findall(text):
        names = re.findall(r"\w+", parameters)
        optional = [each for each in names if re.search(rf"`{each}`[^.;:]* may be left out", comment)]
        if "..." not in parameters:
            found[name] = len(names) - len(optional), len(names)
    return found


def _calls(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Return line, function and arguments of each call in a file."""
    text = _HIDDEN.sub(lambda found: "" if found[0].startswith("--") else "''", text)
    for call in _CALL.finditer(text):
        if not text[: call.start()].endswith("function "):
            yield text.count("\n", 0, call.start()) + 1, call[1], _arguments(text, call.end())


def _arguments(text: str, start: int) -> list[str]:
    """Return the arguments of the call whose bracket opens before `start`."""
    found, depth, begin = [], 1, start
    for at in range(start, len(text)):
        depth += (text[at] in "({[") - (text[at] in ")}]")
        if depth == 0 or (depth == 1 and text[at] == ","):
            found.append(text[begin:at].strip())
            begin = at + 1
        if depth == 0:
            break
    return [] if found == [""] else found


def _fits(arguments: list[str], fewest: int, most: int) -> bool:
    if arguments and re.fullmatch(r"\.\.\.|unpack\(.*\)", arguments[-1], re.DOTALL):
        return len(arguments) - 1 <= most
    if arguments and arguments[-1].endswith(")"):
        return len(arguments) <= most
    return fewest <= len(arguments) <= most


def _luacheck(root: Path) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        configuration = Path(directory) / "luacheckrc"
        configuration.write_text(_configuration())
        options = ("--config", configuration, "--formatter", "plain", "--codes", "--no-color")
        return subprocess.run(["luacheck", "lua", *options], cwd=root, check=False).returncode == 0


def _configuration() -> str:
    modules = {file: f"{module} = {{ fields = {_fields(file, module)} }}" for file, module in library.modules().items()}
    keys = f"Key = {{ fields = {{ {_quoted(KEYS)} }} }}"
    return _CONFIGURATION.format(
        modules=", ".join([keys, *modules.values()]),
        provided=_quoted(library.PROVIDED),
        # A module may set its own functions.
        files="\n".join(f"files['lua/{file}'] = {{ globals = {{ {fields} }} }}" for file, fields in modules.items()),
    )


def _fields(file: str, module: str) -> str:
    """Return the functions that the file of a module defines, and its values, into which other files may write."""
    body = (ROOT / "lua" / file).read_text()
    functions = re.findall(rf"^function {module}\.(\w+)", body, re.MULTILINE)
    values = sorted(set(re.findall(rf"^ *{module}\.(\w+) = ", body, re.MULTILINE)))
    writable = ", ".join(f"{name} = {{ read_only = false, other_fields = true }}" for name in values)
    return f"{{ {_quoted(functions)}{', ' if functions and values else ''}{writable} }}"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def main() -> int:
    """Return 0, or 1 after a warning or without luacheck."""
    if not is_installed():
        print(MISSING)
        return 1
    return 0 if lint(ROOT) else 1


if __name__ == "__main__":
    sys.exit(main())
