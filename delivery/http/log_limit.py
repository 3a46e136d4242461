"""Limits the log lines that clients can cause: a flood of bad requests must not fill the disk."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager


class LogLimit(logging.Filter):
    """Lets `count` records of one source line through in `seconds`. The first one after that reports how many were left
    out.
    """

    def __init__(self, count: int = 20, seconds: float = 60.0) -> None:
        super().__init__()
        self._count, self._seconds = count, seconds
        self._windows: dict[tuple[str, int], tuple[float, int]] = {}  # source line → (start, records)

    def filter(self, record: logging.LogRecord) -> bool:
        place, now = (record.pathname, record.lineno), time.monotonic()
        start, seen = self._windows.get(place, (now, 0))
        if now - start < self._seconds:
            self._windows[place] = (start, seen + 1)
            return seen < self._count
        self._windows[place] = (now, 1)
        if seen > self._count:
            record.msg, record.args = f"{record.getMessage()} ({seen - self._count} lines like this left out)", ()
        return True


@contextmanager
def limited_logs(*names: str) -> Iterator[None]:
    """Limit the loggers with these names."""
    limit = LogLimit()
    for name in names:
        logging.getLogger(name).addFilter(limit)
    try:
        yield
    finally:
        for name in names:
            logging.getLogger(name).removeFilter(limit)
