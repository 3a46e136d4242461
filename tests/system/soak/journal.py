"""The journal of a soak: one line per event, on the disk before the process continues. It uses nothing of Ada."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Journal:
    """One file per process. Lines of several processes are sorted by `at`, the monotonic clock of the machine in ns.

    `ms` is the unix time, which is also the time of the server.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._file = os.open(directory / f"{name}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, what: str, **facts: Any) -> None:
        line = json.dumps({"what": what, "at": time.monotonic_ns(), "ms": int(time.time() * 1000), **facts}) + "\n"
        os.write(self._file, line.encode())
        os.fsync(self._file)


def read(directory: Path) -> list[Line]:
    """The lines of all processes, ordered by time, without the unfinished last line of a killed process."""
    return sorted((line for path in directory.glob("*.jsonl") for line in _lines(path)), key=lambda line: line["at"])


def _lines(path: Path) -> Iterator[Line]:
    whole, _, _ = path.read_text().rpartition("\n")
    return (json.loads(text) for text in whole.splitlines())
