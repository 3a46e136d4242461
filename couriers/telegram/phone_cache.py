"""Stores which user has a phone number. Telegram limits lookups by phone strictly, and a session does not keep them.

An unregistered number is looked up again after a day: its owner may have joined.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

DAY = 24 * 3600  # seconds


@dataclass(frozen=True, slots=True)
class PhoneOwner:
    """The user who has a number: the id, and the access hash that this account needs."""

    user: int
    access_hash: int


@dataclass(frozen=True, slots=True)
class _Entry:
    phone: str
    owner: PhoneOwner | None  # None: not registered
    at: float  # unix seconds


class PhoneCache:
    """A file with one JSON entry per line; the last entry of a number counts."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._entries = {entry.phone: entry for entry in _read(path)}

    def owner(self, phone: str) -> PhoneOwner | None:
        """Return the owner, None if it is not known."""
        entry = self._entries.get(phone)
        return entry.owner if entry else None

    def is_unregistered(self, phone: str) -> bool:
        """Return whether Telegram reported within the last day that the number is not registered."""
        entry = self._entries.get(phone)
        return entry is not None and entry.owner is None and self._clock() - entry.at < DAY

    def store(self, phone: str, owner: PhoneOwner | None) -> None:
        entry = self._entries[phone] = _Entry(phone, owner, self._clock())
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry)) + "\n")


def _read(path: Path) -> list[_Entry]:
    if not path.exists():
        return []
    return [entry for line in path.read_text(encoding="utf-8").splitlines() if (entry := _parse(line))]


def _parse(line: str) -> _Entry | None:
    """Return the entry, None for a line that a crash cut short."""
    try:
        fields = json.loads(line)
        return _Entry(fields["phone"], PhoneOwner(**fields["owner"]) if fields["owner"] else None, fields["at"])
    except (ValueError, KeyError, TypeError):
        return None
