"""How many requests an API key may make: a token bucket per key, in this process.

With several processes behind one address each counts on its own, so a key gets at most as many times the rate. That is
enough to keep one client from starving the others, which is all this is for; what a sender may send is the quota's
business.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class _Bucket:
    level: float
    at: float


class Pace:
    """Token buckets. `rate` per second, `burst` at once; a rate of 0 lets everything through."""

    def __init__(self, rate: float, burst: int) -> None:
        self.rate = rate
        self.burst = burst
        self._buckets: dict[str, _Bucket] = {}

    def take(self, key: str, now: float) -> float:
        """Take one token. Returns the seconds to wait for it: 0.0 means it was there."""
        bucket = self._buckets.setdefault(key, _Bucket(self.burst, now))
        bucket.level = min(self.burst, bucket.level + (now - bucket.at) * self.rate)
        bucket.at = now
        if bucket.level < 1:
            return (1 - bucket.level) / self.rate
        bucket.level -= 1
        return 0.0

    def left(self, key: str) -> int:
        """How many more may come at once."""
        bucket = self._buckets.get(key)
        return int(bucket.level) if bucket else self.burst
