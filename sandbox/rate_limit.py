"""A provider's limit of calls per second. Refused calls do not count."""

from collections import deque

_WINDOW = 1.0


class RateLimit:
    """One per account."""

    def __init__(self) -> None:
        self._accepted: deque[float] = deque()

    def accepts(self, calls_per_second: int, now: float) -> bool:
        """Return whether one more call at `now` (seconds) is within the limit, and count it if so."""
        while self._accepted and self._accepted[0] <= now - _WINDOW:
            self._accepted.popleft()
        if len(self._accepted) >= calls_per_second:
            return False
        self._accepted.append(now)
        return True
