"""The linter of the Lua files: luacheck, with the names that `core.redis.library` provides.

A file may use these names, the functions and values of the other modules, and the key functions. It may use no other
global of Lua, and a module changes only its own functions.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from core.redis import library
from core.redis.keys import KEYS
from tools.luacheck import MISSING, is_installed

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


def lint(root: Path) -> bool:
    """Print each warning in lua/ of `root` with its file and line. Returns whether there is none."""
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
