"""The soak's own memory: one line per event, on the disk before whoever writes it goes on. Nothing of Ada is in it."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Journal:
    """One file per process; the lines of one process are in their order, those of several are sorted by `at`, the ns of
    the machine's monotonic clock. `ms` is the unix time, which is the server's, too.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._file = os.open(directory / f"{name}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, what: str, **facts: Any) -> None:
        line = json.dumps({"what": what, "at": time.monotonic_ns(), "ms": int(time.time() * 1000), **facts}) + "\n"
        os.write(self._file, line.encode())
        os.fsync(self._file)


def read(directory: Path) -> list[Line]:
    """Every line of every process, in the order of time. What a killed process was just writing is left out."""
    return sorted((line for path in directory.glob("*.jsonl") for line in _lines(path)), key=lambda line: line["at"])


def _lines(path: Path) -> Iterator[Line]:
    whole, _, _ = path.read_text().rpartition("\n")
    return (json.loads(text) for text in whole.splitlines())
