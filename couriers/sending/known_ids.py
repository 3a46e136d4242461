"""Stores what a provider has said about ids: which id belongs to which, such as the supergroup that a group became."""

import json
from pathlib import Path


class KnownIds:
    """A file with one pair of ids per line. Processes that share it learn later what others added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ids: dict[str, str] = dict(_read(path))

    def get(self, known: str) -> str:
        """Return the id that belongs to this one; "" if none is known."""
        return self._ids.get(known, "")

    def store(self, known: str, other: str) -> None:
        """Store a pair, unless it is known."""
        if self._ids.get(known) == other:
            return
        self._ids[known] = other
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([known, other]) + "\n")


def _read(path: Path) -> list[tuple[str, str]]:
    if not path.exists():
        return []
    return [pair for line in path.read_text(encoding="utf-8").splitlines() if (pair := _parse(line))]


def _parse(line: str) -> tuple[str, str] | None:
    """Return the pair, None for a line that a crash cut short."""
    try:
        old, new = json.loads(line)
    except (ValueError, TypeError):
        return None
    return str(old), str(new)
