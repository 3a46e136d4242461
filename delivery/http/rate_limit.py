"""Limits the request rate of each API key: a token bucket per key, in this process. Writes RateLimit fields.

Each process counts by itself, so N processes allow N times the rate. That is enough to keep one client from starving
the others. How many messages a sender may send is the business of quotas.
"""

import math
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from datetime import timedelta

from core.errors import TooMany
from core.model.delivery import QuotaState

_MOST_BUCKETS = 10_000


class RateExceeded(TooMany):
    """The key sends requests too fast. `wait`: seconds until the next one is allowed; `headers`: RateLimit fields."""

    def __init__(self, wait: float, headers: Mapping[str, str]) -> None:
        detail = f"The next request is allowed in {wait:.3f} s."
        super().__init__("RATE_EXCEEDED", detail, timedelta(seconds=wait))
        self.headers = headers


def quota_headers(quota: QuotaState) -> dict[str, str]:
    """Return the RateLimit fields (draft-ietf-httpapi-ratelimit-headers-10) of a sender's quota; empty without one."""
    if quota.limit is None:
        return {}
    left, reset = max(0, quota.limit - quota.used), math.ceil(quota.resets_in.total_seconds())
    policy = f'"sender";q={quota.limit};w={math.ceil(quota.period.total_seconds())}'
    return {"RateLimit-Policy": policy, "RateLimit": f'"sender";r={left};t={reset}'}


def add_rate_limit(fields: MutableMapping[str, str], further: Mapping[str, str]) -> None:
    """Add RateLimit fields to a response that may have some: they are lists."""
    for name, value in further.items():
        fields[name] = f"{fields[name]}, {value}" if name in fields else value


@dataclass(slots=True)
class _Bucket:
    level: float
    at: float


class RateLimiter:
    """Token buckets: `rate` requests per second, `burst` at once. A rate of 0 allows everything."""

    def __init__(self, rate: float, burst: int) -> None:
        self.rate = rate
        self.burst = burst
        self._buckets: dict[str, _Bucket] = {}

    def check(self, key: str, now: float) -> None:
        """Take one token. Raises `RateExceeded`."""
        if self.rate and (wait := self.take(key, now)):
            raise RateExceeded(wait, self.headers(key))

    def take(self, key: str, now: float) -> float:
        """Take one token. Returns the seconds to wait; 0.0 means that a token was taken."""
        if len(self._buckets) >= _MOST_BUCKETS:
            self._buckets.clear()
        bucket = self._buckets.setdefault(key, _Bucket(self.burst, now))
        bucket.level = min(self.burst, bucket.level + (now - bucket.at) * self.rate)
        bucket.at = now
        if bucket.level < 1:
            return (1 - bucket.level) / self.rate
        bucket.level -= 1
        return 0.0

    def headers(self, key: str) -> dict[str, str]:
        """Return the RateLimit fields (draft-ietf-httpapi-ratelimit-headers-10); empty without a limit."""
        if not self.rate:
            return {}
        left = int(self._buckets[key].level) if key in self._buckets else self.burst
        window = math.ceil(self.burst / self.rate)
        refill = math.ceil((self.burst - left) / self.rate)
        return {"RateLimit-Policy": f'"key";q={self.burst};w={window}', "RateLimit": f'"key";r={left};t={refill}'}
