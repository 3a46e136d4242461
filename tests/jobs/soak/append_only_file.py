"""Reads the append-only file of a server: every write that it has executed, in order."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Write:
    """`offset`: where it begins in the file. `words`: the command, in lower case, and its arguments."""

    offset: int
    words: tuple[str, ...]


def read_writes(file: Path) -> Iterator[Write]:
    """Annotations are skipped. Raises ValueError if the file is not complete."""
    data, offset = file.read_bytes(), 0
    while offset < len(data):
        end = data.index(b"\r\n", offset)
        following = end + 2
        if data[offset : offset + 1] == b"*":
            words, following = _words(data, following, int(data[offset + 1 : end]))
            yield Write(offset, (words[0].lower(), *words[1:]))
        offset = following


def _words(data: bytes, offset: int, count: int) -> tuple[list[str], int]:
    """`count` words, and where the next command begins."""
    words = []
    for _ in range(count):
        end = data.index(b"\r\n", offset)
        begin = end + 2
        offset = begin + int(data[offset + 1 : end]) + 2
        words.append(data[begin : offset - 2].decode(errors="replace"))
    return words, offset
