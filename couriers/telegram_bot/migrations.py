"""Stores which group became which supergroup: contacts keep the old id, and Telegram refuses it."""

import json
from pathlib import Path


class Migrations:
    """A file with one pair of ids per line. Processes that share it learn later what others added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new_ids: dict[str, str] = dict(_read(path))

    def current(self, chat: str) -> str:
        """Return the id of the supergroup that this group became, otherwise the id itself."""
        return self._new_ids.get(chat, chat)

    def store(self, old: str, new: str) -> None:
        self._new_ids[old] = new
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([old, new]) + "\n")


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
