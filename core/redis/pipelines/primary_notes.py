"""Notes of a pipeline about its server: the calls that note the primary of a shard (`core.redis.primary`), as far as
they go before other calls; for how long the server, or one slot of it, has refused calls, because a fail-over and a
move of slots take a while.
"""

import asyncio
import time
from collections.abc import Collection, Sequence
from functools import partial

from redis.exceptions import RedisError, ResponseError

from core.redis.connection import Reply, StoreConnection
from core.redis.library import is_missing
from core.redis.pipelines.call import StoreCall
from core.redis.refusals import is_about_slot, may_pass


class PrimaryNotes:
    """`packed`: the call of each shard. Each due one goes before every batch until the server has made the note."""

    def __init__(self, packed: Sequence[bytes]) -> None:
        self._packed = packed
        self._due: set[int] = set()

    def add(self, home: int) -> None:
        """Note a home that another primary has had until now. Keys without a shard need no note."""
        if home < len(self._packed):
            self._due.add(home)

    def forget(self, homes: Collection[int]) -> None:
        self._due.difference_update(homes)

    def next(self, connection: StoreConnection) -> list[StoreCall]:
        """Return the calls that go before a batch. A replica may be promoted at any moment, so all are due there."""
        if connection.is_replica:
            self._due.update(range(len(self._packed)))
        calls = []
        for home in sorted(self._due):
            answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(partial(self._take, connection, home))
            calls.append(StoreCall(self._packed[home], answer, 0.0, home))
        return calls

    def _take(self, connection: StoreConnection, home: int, answer: "asyncio.Future[Reply]") -> None:
        fault = None if answer.cancelled() else answer.exception()
        if not answer.cancelled() and fault is None:
            connection.is_replica = False
            self._due.discard(home)
        elif isinstance(fault, ResponseError) and not may_pass(fault) and not is_missing(fault):
            self._due.discard(home)  # the user may not: there is no epoch then


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
