"""Files in the folders of users. A symbolic link may lead to another file of the folder, never out of it. Reads links
only.
"""

from contextlib import suppress
from pathlib import Path


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
