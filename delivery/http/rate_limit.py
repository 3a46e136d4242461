"""How many requests an API key may make: a token bucket per key, in this process.

With several processes behind one address each counts on its own, so a key gets at most as many times the rate. That is
enough to keep one client from starving the others, which is all this is for; what a sender may send is the quota's
business.
"""

import math
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

    def fields(self, key: str) -> dict[str, str]:
        """The RateLimit fields (draft-ietf-httpapi-ratelimit-headers-10): the policy, and what is left of it."""
        left = int(self._buckets[key].level) if key in self._buckets else self.burst
        window = math.ceil(self.burst / self.rate)
        refill = math.ceil((self.burst - left) / self.rate)
        return {"RateLimit-Policy": f'"key";q={self.burst};w={window}', "RateLimit": f'"key";r={left};t={refill}'}
