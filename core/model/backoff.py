"""When a postponed message or task is attempted again. Pure.

A wait named by the provider is kept to the millisecond. Without one the pause doubles with each attempt; its jitter
keeps messages that were refused together from coming back together.
"""

import random
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Backoff:
    """`attempts`: how many are made in all if the provider names no wait."""

    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=5)
    attempts: int = 8

    def pause(self, attempt: int, jitter: float | None = None) -> timedelta:
        """Return the pause after the `attempt`-th attempt (from 1): between half and the whole of first ×
        2^(attempt-1), at most `longest`. `jitter`: from 0 (half) to 1 (whole); None: random.
        """
        whole: timedelta = min(self.longest, self.first * 2 ** min(attempt - 1, 20))
        return whole * (0.5 + (random.random() if jitter is None else jitter) / 2)

    def spent(self, attempt: int) -> bool:
        """Return whether the `attempt`-th attempt was the last."""
        return attempt >= self.attempts
