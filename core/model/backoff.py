"""When a put-off message is tried again. Pure.

A wait that the provider named is kept to the millisecond; without one the pause doubles, with full jitter, so that many
messages refused at once do not come back at once.
"""

import random
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Backoff:
    """`attempts`: how often a message is tried in all when the provider names no wait."""

    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=5)
    attempts: int = 8

    def pause(self, attempt: int, chance: float | None = None) -> timedelta:
        """The pause after the `attempt`-th attempt (from 1): between half and the whole of first × 2^(attempt-1), at
        most `longest`.
        """
        whole: timedelta = min(self.longest, self.first * 2 ** min(attempt - 1, 20))
        return whole * (0.5 + (random.random() if chance is None else chance) / 2)

    def spent(self, attempt: int) -> bool:
        """Whether the `attempt`-th attempt was the last."""
        return attempt >= self.attempts
