"""A pipeline whose calls are answered when a replica has what they wrote.

    calls ─▶ one write: call, call, …, PUBLISH, WAIT 1 ─▶ replies held until that of WAIT ─▶ the callers' futures

WAIT blocks its connection, so the calls have one of their own; those that come meanwhile are the next batch.

WAIT counts the replicas that have what its connection wrote last. A call that only finds what another connection has
written (a repeat of an earlier one) writes nothing, so each batch ends with a mark: a message on a channel, which
replicas get as they get writes, or in a cluster, where they do not, a key. A replica that confirms it has all that was
written before.

Before the first batch, and after a batch that no replica has confirmed, the mark goes alone: without a replica the
calls are refused before they write anything.

A confirmation that comes late may be that of a primary which was frozen until another one was promoted, and of a
replica that has not noticed it yet. It counts when both confirm the mark once more, after the time that this takes.

Used by `core.redis.store` with ADA_DURABILITY=replica (docs/high-availability.md).
"""

import asyncio
import math
import time
from typing import Any

from redis.exceptions import RedisError

from core.errors import StoreRefuses, StoreUnavailable
from core.redis.connection import Connection, Reply, encoded
from core.redis.keys import KEYS
from core.redis.pipelines.call import Call, fail
from core.redis.pipelines.pipeline import Pipeline
from core.redis.topology import Topology

_CONFIRMATION_MS = 2000
_WAIT = encoded("WAIT", 1, _CONFIRMATION_MS)
# Seconds. A primary is replaced when it was silent for longer than the first; after the second it knows of it.
_LATE = 1.0
_SETTLED = 0.3


class ReplicatedPipeline(Pipeline):
    """The futures also raise StoreRefuses, if no replica follows the primary and nothing was written, and
    StoreUnavailable, if no replica has confirmed what was written.
    """

    def __init__(self, topology: Topology, patience: float = 30.0, **options: Any) -> None:
        super().__init__(topology, patience, **options)
        self._held: list[tuple[Call, Reply]] = []
        self._is_confirming = False
        self._marked: Call  # whose shard has the mark of the batch
        self._mark: Reply = None  # the reply to it
        self._has_replica = False
        self._late_at = 0.0  # by time.monotonic

    def _write(self) -> None:
        if self._holds_back():
            return
        connection = self._connection
        if self._is_confirming or not self._waiting or not connection or connection.lost.done():
            return
        self._is_confirming, self._marked = True, self._waiting[0]
        self._late_at = time.monotonic() + _LATE
        self._write_mark(connection, self._next_batch(connection) if self._has_replica else b"")

    def _write_mark(self, connection: Connection, batch: bytes = b"") -> None:
        self._mark = None
        connection.write(batch + _mark(self._marked.home, in_cluster=self.topology.must_be_primary) + _WAIT)

    def _take(self, reply: Reply) -> None:
        self._answered += 1
        if self._in_flight:
            self._held.append((self._in_flight.popleft(), reply))
        elif self._mark is None:
            self._mark = reply
        else:
            self._confirm(self._mark if isinstance(self._mark, RedisError) else reply)

    def _confirm(self, reply: Reply) -> None:
        """Answer the calls of a batch. A refused mark or WAIT means that the server is not the primary of them any
        more: the batch is repeated, at the primary that the refusal names, or on the next connection.
        """
        if isinstance(reply, RedisError):
            self._repeat_batch(reply)
            return
        if time.monotonic() > self._late_at:
            asyncio.get_running_loop().call_later(_SETTLED, self._confirm_again, self._connection)
            return
        held, self._held, self._is_confirming = self._held, [], False
        had_replica, self._has_replica = self._has_replica, reply >= 1
        if self._has_replica:
            for call, answer in held:
                self._answer(call, answer)
        elif had_replica:
            fail([call for call, _ in held], _not_confirmed())
        else:
            fail(self._waiting, _without_replica())
            self._waiting.clear()
        self._write()

    def _confirm_again(self, connection: Connection | None) -> None:
        """Ask for the confirmation of a batch once more, unless it is repeated on another connection."""
        if connection and connection is self._connection and self._is_confirming:
            self._late_at = math.inf
            self._write_mark(connection)

    def _repeat_batch(self, refusal: RedisError) -> None:
        assert self._connection
        if self._goes_elsewhere(self._marked, refusal):
            self._waiting.extendleft(reversed(self._unanswered()))
            self._write()
        else:
            self._connection.cut(refusal)

    def _unanswered(self) -> list[Call]:
        for call, reply in self._held:
            call.is_unclear = call.is_unclear or not isinstance(reply, RedisError)
        calls = [call for call, _ in self._held] + super()._unanswered()
        self._held, self._is_confirming, self._has_replica = [], False, False
        return calls

    def _is_due(self) -> bool:
        return self._is_confirming


def _mark(home: int, *, in_cluster: bool) -> bytes:
    """Return a command that reaches the replicas. Messages on channels reach no replica in a cluster."""
    if not in_cluster:
        return encoded("PUBLISH", "ada:replicas", "")
    return encoded("SET", KEYS["replicated"].at(home), "", "PX", 1000)


def _without_replica() -> StoreRefuses:
    return StoreRefuses(
        "STORE_WITHOUT_REPLICAS",
        "No replica of Redis confirms writes, and ADA_DURABILITY=replica accepts nothing without one: repair the "
        "replicas, or set ADA_DURABILITY=local.",
    )


def _not_confirmed() -> StoreUnavailable:
    return StoreUnavailable("No replica of Redis has confirmed the call in time; it is safe to repeat.")
