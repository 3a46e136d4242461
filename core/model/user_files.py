"""Files of users: their names, as headers, forms and folders may have them, and their paths.

A symbolic link may lead to another file of the folder, never out of it. Only links are read.
"""

from contextlib import suppress
from pathlib import Path

LONGEST = 60
"""Characters; at most 240 bytes, fewer than a file system allows."""


def safe_name(name: str) -> str:
    """Return the name without what may not stand in a header, a form or a path; its end if it is long; "file" if
    nothing is left.
    """
    kept = [character for character in name if character.isprintable() and character not in '"\\/']
    return "".join(kept[-LONGEST:]).lstrip(". ") or "file"


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
