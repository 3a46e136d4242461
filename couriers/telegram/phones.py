"""Remembers whose a phone number is: Telegram limits these questions strictly, and a session forgets the numbers.

A number that is nobody's is asked again after a day: its owner may have joined.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

DAY = 24 * 3600


@dataclass(frozen=True, slots=True)
class Owner:
    """Who has a number: his id and the access hash that this account needs to write to him."""

    user: int
    access_hash: int


@dataclass(frozen=True, slots=True)
class _Answer:
    phone: str
    owner: Owner | None
    at: float


class Phones:
    """A file with one answer a line; the last one of a number counts."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._answers = {answer.phone: answer for answer in _read(path)}

    def owner(self, phone: str) -> Owner | None:
        """Whose it is as far as is known."""
        answer = self._answers.get(phone)
        return answer.owner if answer else None

    def nobodys(self, phone: str) -> bool:
        """Whether Telegram said within the last day that nobody has it."""
        answer = self._answers.get(phone)
        return answer is not None and answer.owner is None and self._clock() - answer.at < DAY

    def remember(self, phone: str, owner: Owner | None) -> None:
        answer = self._answers[phone] = _Answer(phone, owner, self._clock())
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(answer)) + "\n")


def _read(path: Path) -> list[_Answer]:
    if not path.exists():
        return []
    return [answer for line in path.read_text(encoding="utf-8").splitlines() if (answer := _parsed(line))]


def _parsed(line: str) -> _Answer | None:
    """A line that a crash cut short is not an answer."""
    try:
        fields = json.loads(line)
        return _Answer(fields["phone"], Owner(**fields["owner"]) if fields["owner"] else None, fields["at"])
    except (ValueError, KeyError, TypeError):
        return None
