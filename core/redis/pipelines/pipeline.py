"""One connection to Redis that batches commands: all commands of one turn of the event loop are written together.

    call ─▶ waiting ─▶ one write ─▶ server ─▶ replies in order ─▶ the callers' futures

Guarantee: commands are written and answered in the order of their calls; a call that the server refuses because of its
state (READONLY, NOREPLICAS, CLUSTERDOWN …) is repeated on a new connection, behind those in flight. One whose slot has
moved (MOVED) is repeated at the primary that the answer names; this connection stays. When the connection
breaks, it is unknown whether the commands in flight ran. Every command must therefore be safe to repeat: the pipeline
repeats it on the next connection until its deadline. After that the caller gets `StoreUnavailable`.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct
from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from core.errors import StoreError, StoreUnavailable
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.connection import OutageLog, Reply, StoreConnection, Word, encoded
from core.redis.library import is_missing
from core.redis.refusals import is_about_slot, may_pass, refused_write
from core.redis.topology import PrimaryMoved, Topology

log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
# Bytes of one write. Beyond it the server answers the first commands while the last are still being written.
_WRITE = 256 * 1024
# Flush early at this many waiting calls, so the server works while we encode the next ones.
_EARLY = 8
# A call that is sent on more often waits like one that meets an outage: the nodes disagree.
_REDIRECTIONS = 5
FAIL_OVER = 5.0
"""Seconds that a fail-over takes. A server that refuses writes for longer needs its operator."""


class StoreCall(Struct, eq=False):
    """A command with its caller's future. `deadline`: monotonic seconds after which it is not repeated. `home`: whose
    primary must get it (`core.redis.cluster`). `is_unclear`: a connection broke before its reply, so that it may have
    run. `redirections`: how often a server has named another one.
    """

    packed: bytes
    answer: asyncio.Future[Reply]
    deadline: float
    home: int = 0
    is_unclear: bool = False
    redirections: int = 0


def fault_of(call: StoreCall, refusal: RedisError) -> Exception:
    """Return what a caller gets for an error reply. What may have run before is not called refused."""
    refused = refused_write(refusal) if call.is_unclear else None
    return StoreUnavailable(f"Whether the call ran before is unknown. {refused}") if refused else refusal


def fail(calls: Iterable[StoreCall], fault: StoreError) -> None:
    """Raise a fault to the callers that still wait."""
    for call in calls:
        if not call.answer.done():
            call.answer.set_exception(fault)


class Routes(Protocol):
    """The pipelines of all primaries, for the one of `primary`."""

    async def read_again(self, primary: Topology) -> bool:
        """Find out where the primaries are, and do `pass_on`. Return whether this primary still has anything."""

    def is_redirected(self, primary: Topology, home: int, refusal: RedisError) -> bool:
        """Return whether a refusal means that another primary has this home."""

    def pass_on(self, primary: Topology) -> None:
        """Give the waiting calls of what other primaries have to their pipelines. Nothing is in flight."""


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


class Pipeline:
    """`patience`: seconds for which a command is repeated over broken connections. `silence`: seconds without a reply,
    while replies are due, after which the connection is cut. `notes`: see `PrimaryNotes`. `routes`: where calls go
    whose shard another primary has. `fail_over`: seconds after which a state that refuses writes is not waited for.
    """

    def __init__(
        self,
        topology: Topology,
        patience: float = 30.0,
        silence: float = 10.0,
        notes: Sequence[bytes] = (),
        routes: Routes | None = None,
        fail_over: float = FAIL_OVER,
    ) -> None:
        self.topology = topology
        self._patience = patience
        self._silence = silence
        self._waiting: deque[StoreCall] = deque()
        self._in_flight: deque[StoreCall] = deque()
        self._notes = PrimaryNotes(notes)
        self._routes = routes
        self._refusals = RefusalTimes(fail_over)
        self._refused: list[StoreCall] = []  # to be repeated when no reply is due
        self._refusal: RedisError | None = None  # why, if the connection has to end
        self._is_passing_on = False
        self._has_passed_on = False
        self._connection: StoreConnection | None = None
        self._flushing = False
        self._task: asyncio.Task[None] | None = None
        self._answered = 0
        self._outage = OutageLog(log, "Redis does not answer")
        self.commands = 0

    def call(self, *command: Word, home: int = 0) -> "asyncio.Future[Reply]":
        """Send a command that is safe to repeat. The future returns the reply, or raises ResponseError or
        StoreUnavailable.
        """
        return self.send(encoded(*command), home)

    def send(self, command: bytes, home: int = 0) -> "asyncio.Future[Reply]":
        """Call a command that is in the protocol's form."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reply] = loop.create_future()
        self.resume(StoreCall(command, answer, time.monotonic() + self._patience, home))
        self.commands += 1
        return answer

    def resume(self, call: StoreCall) -> None:
        """Send a call behind all that wait."""
        self._waiting.append(call)
        if not self._in_flight or len(self._waiting) >= _EARLY:
            self._write()
        if self._waiting:
            self._flush_soon()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="redis pipeline")

    def take_over(self, home: int) -> None:
        """Note the primary of a home before its first call: another one had it before."""
        self._notes.add(home)

    def give_up(self, homes: Collection[int]) -> list[StoreCall]:
        """Remove the waiting calls of these homes; return them in order."""
        calls, self._waiting = self._waiting, deque()
        self._waiting.extend(call for call in calls if call.home not in homes)
        self._notes.forget(homes)
        self._refusals.forget(homes)
        self._has_passed_on |= bool(homes)
        return [call for call in calls if call.home in homes]

    def pass_on(self, *, at_once: bool) -> None:
        """Write nothing more until all replies are there, and pass on what other primaries have; or close the
        connection `at_once`, because this primary has nothing any more.
        """
        self._is_passing_on = True
        if at_once and self._connection:
            self._connection.cut(PrimaryMoved())
        self._flush_soon()

    async def close(self) -> None:
        """Close the connection. Callers whose reply is still due get StoreUnavailable."""
        if self._task:
            await cancel_and_wait(self._task)
        self._fail_all(StoreUnavailable("The connection to Redis was closed."))

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            if connection := await self._connect():
                await self._serve(connection)
                pause = pause if self._refused else _FIRST_PAUSE
            self._waiting.extendleft(reversed(self._unanswered()))
            self._fail_expired()
            self._has_passed_on = False
            if self._routes and not await self._routes.read_again(self.topology):
                self._task = None
                return
            if self._has_passed_on:  # what was refused has gone to another primary; the other calls do not wait for it
                pause = _FIRST_PAUSE
                continue
            await self.topology.pause(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _connect(self) -> StoreConnection | None:
        try:
            connection = await self.topology.open(self._take, on_resume=self._write)
        except (AuthenticationError, ResponseError) as fault:
            if refused_write(fault):  # at the first call of the connection
                self._refuse_waiting(fault)
                return None
            self._fail_all(StoreUnavailable(f"Redis refused the login: {fault}"))
        except (RedisError, OSError, TimeoutError) as fault:
            self._outage.failed(fault)
        else:
            self._outage.ended()
            return connection
        return None

    async def _serve(self, connection: StoreConnection) -> None:
        """Write commands and take replies until the connection is lost."""
        self._connection, self._refusal = connection, None
        watching = asyncio.create_task(self._watch(connection), name="redis silence")
        try:
            self._write()
            self._outage.failed(await connection.lost)
        finally:
            watching.cancel()
            self._connection = None
            connection.close()

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        self._write()

    def _write(self) -> None:
        """Write the waiting commands, as far as the server reads them."""
        if self._holds_back():
            return
        connection = self._connection
        while self._waiting and connection and not connection.paused and not connection.lost.done():
            connection.write(self._next_batch(connection))

    def _next_batch(self, connection: StoreConnection) -> bytes:
        notes = self._notes.next(connection)
        self._in_flight.extend(notes)
        batch, size = [note.packed for note in notes], 0
        while self._waiting and size < _WRITE:
            call = self._waiting.popleft()
            batch.append(call.packed)
            size += len(call.packed)
            self._in_flight.append(call)
        return b"".join(batch)

    def _take(self, reply: Reply) -> None:
        """Pass a reply to the caller of the oldest command in flight."""
        self._answered += 1
        self._answer(self._in_flight.popleft(), reply)
        if self._refused or self._is_passing_on:
            self._flush_soon()

    def _answer(self, call: StoreCall, reply: Reply) -> None:
        if call.answer.done():
            return
        if not isinstance(reply, RedisError):
            call.answer.set_result(reply)
        elif may_pass(reply) and time.monotonic() < call.deadline and self._is_repeated(call, reply):
            self._refused.append(call)
        else:
            call.answer.set_exception(fault_of(call, reply))

    def _is_repeated(self, call: StoreCall, refusal: RedisError) -> bool:
        """Return whether a call goes to another primary, or is worth repeating here."""
        if self._goes_elsewhere(call, refusal):
            return True
        if is_new := self._refusals.is_new(refusal, call.home):
            self._refusal = refusal
        return is_new

    def _goes_elsewhere(self, call: StoreCall, refusal: RedisError) -> bool:
        """Return whether a call is to be passed on, because the refusal names its primary."""
        is_disputed = call.redirections >= _REDIRECTIONS
        if is_disputed or not self._routes or not self._routes.is_redirected(self.topology, call.home, refusal):
            return False
        call.redirections += 1
        self._is_passing_on = True
        return True

    # states in which the server refuses writes

    def _holds_back(self) -> bool:
        """Return whether nothing may be written until all replies are there: calls were refused, or other primaries
        have some. Then leave a server that refuses; else pass on what others have, and go on.
        """
        if not (self._refused or self._is_passing_on):
            return False
        if self._is_due():
            return True
        if self._refusal and self._connection:
            self._connection.cut(self._refusal)
            return True
        self._waiting.extendleft(reversed(self._refused))
        self._refused.clear()
        self._is_passing_on = False
        if self._routes:
            self._routes.pass_on(self.topology)
        return False

    def _refuse_waiting(self, refusal: RedisError) -> None:
        self._outage.failed(refusal)
        if may_pass(refusal) and self._refusals.is_new(refusal):
            return
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            if not call.answer.done():
                call.answer.set_exception(fault_of(call, refusal))

    def _unanswered(self) -> list[StoreCall]:
        """Return the calls without an answer whose connection is lost, in order, and forget them."""
        for call in self._in_flight:
            call.is_unclear = True
        calls = [*self._refused, *self._in_flight]
        self._refused.clear()
        self._in_flight.clear()
        return calls

    def _is_due(self) -> bool:
        """Return whether the server owes a reply."""
        return bool(self._in_flight)

    async def _watch(self, connection: StoreConnection) -> None:
        """Cut the connection when replies are due and none came for `silence` seconds."""
        while True:
            answered, is_due = self._answered, self._is_due()
            await asyncio.sleep(self._silence)
            if is_due and self._answered == answered:
                connection.cut(RedisTimeoutError(f"silent for {self._silence} s"))

    def _fail_expired(self) -> None:
        now = time.monotonic()
        expired = [call for call in self._waiting if call.deadline <= now]
        self._waiting = deque(call for call in self._waiting if call.deadline > now)
        fail(expired, StoreUnavailable("Redis could not be reached in time; the call is safe to repeat."))

    def _fail_all(self, fault: StoreUnavailable) -> None:
        fail([*self._unanswered(), *self._waiting], fault)
        self._waiting.clear()
