"""A pipeline whose calls are answered when a replica has what they wrote.

    calls ─▶ one write: call, call, …, PUBLISH, WAIT 1 ─▶ replies held until that of WAIT ─▶ the callers' futures

WAIT blocks its connection, so the calls have one of their own; those that come meanwhile are the next batch.

WAIT counts the replicas that have what its connection wrote last. A call that only finds what another connection has
written (a repeat of an earlier one) writes nothing, so each batch ends with a mark: a message on a channel, which
replicas get as they get writes, or in a cluster, where they do not, a key. A replica that confirms it has all that was
written before.

Before the first batch, and after a batch that no replica has confirmed, the mark goes alone: without a replica the
calls are refused before they write anything.

A primary that is being replaced goes on confirming, with a replica that does not know it yet: for seconds, in a
partition for ever. So the confirmation counts when the `core.redis.witnesses` say after it that no promotion can have
begun. As long as they do not, all is confirmed again, for some seconds; then the batch fails.

At a single address there are no witnesses. There a confirmation that comes late counts when primary and replica confirm
the mark once more: the primary may have been frozen until another one was promoted.

Used by `core.redis.store` with ADA_DURABILITY=replica (docs/high-availability.md).
"""

import asyncio
import math
import time
from typing import Any

from redis.exceptions import RedisError

from core.errors import StoreRefuses, StoreUnavailable
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.connection import Reply, StoreConnection, encoded
from core.redis.keys import KEYS
from core.redis.pipelines.pipeline import Pipeline, StoreCall, fail
from core.redis.topology import Topology
from core.redis.witnesses import Witnesses

_CONFIRMATION_MS = 2000
_WAIT = encoded("WAIT", 1, _CONFIRMATION_MS)
# Seconds. A primary is replaced when it was silent for longer than the first; after the second it knows of it.
_LATE = 1.0
_SETTLED = 0.3
# How often a batch is confirmed again while the witnesses do not confirm it, and seconds in between: a promotion ends.
_DOUBTS = 50
_AGAIN = 0.1


class ReplicatedPipeline(Pipeline):
    """The futures also raise StoreRefuses, if no replica follows the primary and nothing was written, and
    StoreUnavailable, if no replica, or not enough of the witnesses, have confirmed what was written.
    """

    def __init__(
        self, topology: Topology, patience: float = 30.0, *, witnesses: Witnesses | None = None, **options: Any
    ) -> None:
        super().__init__(topology, patience, **options)
        self._witnesses = witnesses
        self._listener: asyncio.Task[None] | None = None
        self._held: list[tuple[StoreCall, Reply]] = []
        self._is_confirming = False
        self._marked: StoreCall  # whose shard has the mark of the batch
        self._mark: Reply = None  # the reply to it
        self._has_replica = False
        self._late_at = 0.0  # by time.monotonic
        self._doubts = 0  # how often the batch may be confirmed again

    def _write(self) -> None:
        if self._holds_back():
            return
        connection = self._connection
        if self._is_confirming or not self._waiting or not connection or connection.lost.done():
            return
        self._is_confirming, self._marked = True, self._waiting[0]
        self._late_at, self._doubts = time.monotonic() + _LATE, _DOUBTS
        self._write_mark(connection, self._next_batch(connection) if self._has_replica else b"")

    def _write_mark(self, connection: StoreConnection, batch: bytes = b"") -> None:
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
        if reply >= 1 and self._witnesses and self._connection:
            self._listener = asyncio.create_task(self._listen(self._witnesses, self._connection), name="witnesses")
        elif time.monotonic() > self._late_at and not self._witnesses:
            asyncio.get_running_loop().call_later(_SETTLED, self._confirm_again, self._connection)
        elif reply >= 1:
            self._accept_batch()
        else:
            self._refuse_batch(_without_replica(), _not_confirmed())

    async def _listen(self, witnesses: Witnesses, connection: StoreConnection) -> None:
        """Answer the calls of a batch if the witnesses confirm it, unless its connection was lost meanwhile."""
        is_sure = await witnesses.confirm(connection.address)
        if connection.lost.done():
            return
        if is_sure:
            self._accept_batch()
        elif self._doubts:
            self._doubts -= 1
            asyncio.get_running_loop().call_later(_AGAIN, self._confirm_again, connection)
        else:
            self._refuse_batch(refusal := _in_doubt(connection), StoreUnavailable(f"The call may be lost. {refusal}"))

    def _accept_batch(self) -> None:
        held, self._held, self._is_confirming = self._held, [], False
        self._has_replica = True
        for call, answer in held:
            self._answer(call, answer)
        self._write()

    def _refuse_batch(self, refusal: StoreRefuses, unclear: StoreUnavailable) -> None:
        """Fail the calls of a batch; if it was the mark alone, those that wait. `unclear`: for what was written."""
        held, self._held, self._is_confirming = self._held, [], False
        if self._has_replica:
            fail([call for call, _ in held], unclear)
        else:
            fail([call for call in self._waiting if call.is_unclear], unclear)
            fail(self._waiting, refusal)
            self._waiting.clear()
        self._has_replica = False
        self._write()

    def _confirm_again(self, connection: StoreConnection | None) -> None:
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

    async def close(self) -> None:
        if self._listener:
            await cancel_and_wait(self._listener)
        await super().close()

    def _unanswered(self) -> list[StoreCall]:
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


def _in_doubt(connection: StoreConnection) -> StoreRefuses:
    return StoreRefuses(
        "STORE_PRIMARY_IN_DOUBT",
        f"Redis at {connection.address} may be about to be replaced: not enough of the Sentinels, or of the primaries "
        "of the cluster, say that it is the primary. ADA_DURABILITY=replica accepts nothing meanwhile: let a majority "
        "be reachable from here, and ADA_REDIS_URL name all Sentinels.",
    )


def _not_confirmed() -> StoreUnavailable:
    return StoreUnavailable("No replica of Redis has confirmed the call in time; it is safe to repeat.")
