"""Files of users: their names, as headers, forms and folders may have them, their paths, and the faults of those in
YAML.

A symbolic link may lead to another file of the folder, never out of it. Only links are read.
"""

import re
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from core.model.text.characters import nfc

LONGEST = 240
"""Bytes, fewer than a file system allows."""
_LONGEST_ENDING = 20
"""Characters of an ending such as .docx, with its dot."""
_PATH_MARKS = str.maketrans('"\\/', "___")


def safe_name(name: str) -> str:
    """Return the name in NFC, with _ in place of quotation marks and slashes, without what is not printable and spaces
    at its end, which mail programs take away; of a name of more than `LONGEST` bytes its beginning, "…" and its ending;
    "file" if nothing is left.
    """
    shown = "".join(filter(str.isprintable, nfc(name))).translate(_PATH_MARKS).lstrip(". ").rstrip(" ")
    if len(shown.encode()) <= LONGEST:
        return shown or "file"
    ending = PurePath(shown).suffix
    behind = f"…{ending if len(ending) <= _LONGEST_ENDING else ''}"
    return shown.encode()[: LONGEST - len(behind.encode())].decode(errors="ignore") + behind


def inner_path(path: Path, *folders: Path) -> Path | None:
    """Return the path with its links followed; None if it is in none of the folders then. Raises OSError, ValueError,
    RuntimeError (links in a circle).
    """
    real = path.resolve()
    return real if any(real.is_relative_to(folder.resolve()) for folder in folders) else None


def has_no_link(path: Path) -> bool:
    """Return whether an absolute path that `inner_path` returned leads to the same place still, as no part of it is a
    link."""
    with suppress(OSError, ValueError, RuntimeError):
        return path.resolve() == path
    return False


_QUOTED = re.compile(r"'[^']{2,}'")
"""A name of the file; a single character may be shown."""


def fault_of(error: Exception) -> str:
    """Return the problem and its place, of an error of PyYAML. Its own text also quotes the lines, which may contain
    secrets.
    """
    mark: Any = getattr(error, "problem_mark", None)
    if mark is None:
        return "it has characters that YAML does not allow"
    problem = _QUOTED.sub("'…'", getattr(error, "problem", None) or "it cannot be read")
    return f"{problem} in line {mark.line + 1}, column {mark.column + 1}"
