"""Logs an outage once, when it has lasted for some seconds, and its end: a server that restarts at once is no news.

`./ada up` has ten processes that lose their connections at the same moment.
"""

import logging
import time

PATIENCE = 3.0
"""Seconds."""


class OutageLog:
    """`what`: what has failed, as the first words of the line."""

    def __init__(self, log: logging.Logger, what: str, patience: float = PATIENCE) -> None:
        self._log = log
        self._what = what
        self._patience = patience
        self._since: float | None = None
        self._is_logged = False

    def failed(self, reason: Exception) -> None:
        """Note a failure; log the outage once it has lasted longer than the patience."""
        text = str(reason) or type(reason).__name__
        self._log.debug("%s: %s", self._what, text)
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if not self._is_logged and now - self._since >= self._patience:
            self._is_logged = True
            self._log.warning("%s: %s", self._what, text)

    def ended(self) -> None:
        """Note that it works again; log the end of an outage that was logged."""
        if self._is_logged:
            self._log.warning("%s: over", self._what)
        self._since, self._is_logged = None, False
