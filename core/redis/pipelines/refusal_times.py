"""For how long a server, or one slot of it, has refused calls: a fail-over and a move of slots take a while."""

import time
from collections.abc import Collection

from redis.exceptions import RedisError

from core.redis.refusals import is_about_slot

FAIL_OVER = 5.0
"""Seconds that a fail-over takes. A server that refuses writes for longer needs its operator."""


class RefusalTimes:
    """`fail_over`: seconds after which a state that refuses calls is not waited for any more."""

    def __init__(self, fail_over: float) -> None:
        self._fail_over = fail_over
        self._times: dict[int | None, tuple[float, float]] = {}  # home → since when, and when last, by time.monotonic

    def is_new(self, refusal: RedisError, home: int | None = None) -> bool:
        """Note a refusal, of one home if its slot is the reason. Return whether the state is so new that it may end by
        itself.
        """
        state = home if is_about_slot(refusal) else None
        now, (since, last) = time.monotonic(), self._times.get(state, (0.0, 0.0))
        since = now if now - last > self._fail_over else since
        self._times[state] = since, now
        return now - since < self._fail_over

    def forget(self, homes: Collection[int]) -> None:
        """Forget what was about slots that have moved."""
        for home in homes:
            self._times.pop(home, None)
