"""Looks for luacheck. `tools.lua_linter` runs it."""

import shutil

MISSING = "luacheck is not installed (Debian, Ubuntu: apt-get install lua-check)"


def is_installed() -> bool:
    return shutil.which("luacheck") is not None
