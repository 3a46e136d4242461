"""One connection to Redis that batches commands: all commands of one turn of the event loop are written together.

    call ─▶ waiting ─▶ one write ─▶ server ─▶ replies in order ─▶ the callers' futures

Guarantee: commands are written and answered in the order of their calls; a call that the server refuses because of its
state (READONLY, NOREPLICAS, CLUSTERDOWN …) is repeated on a new connection, behind those in flight. When the connection
breaks, it is unknown whether the commands in flight ran. Every command must therefore be safe to repeat: the pipeline
repeats it on the next connection until its deadline. After that the caller gets `StoreUnavailable`.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from core.errors import StoreUnavailable
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.connection import Connection, Reply, Word, encoded
from core.redis.outage_log import OutageLog
from core.redis.pipelines.call import Call, fail, fault_of
from core.redis.refusals import may_pass, refused_write
from core.redis.topology import PrimaryMoved, Topology

log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
# Seconds that a fail-over takes. A server that refuses writes for longer needs its operator.
FAIL_OVER = 5.0
# Bytes of one write. Beyond it the server answers the first commands while the last are still being written.
_WRITE = 256 * 1024
# Flush early at this many waiting calls, so the server works while we encode the next ones.
_EARLY = 8


class Pipeline:
    """`patience`: seconds for which a command is repeated over broken connections. `silence`: seconds without a reply,
    while replies are due, after which the connection is cut. `guards`: calls that go before every batch to a server
    that was a replica at the login (`core.redis.primary`). `between` is awaited between two connections and returns
    whether there is to be another one. `fail_over`: seconds after which a state that refuses writes is not waited for.
    """

    def __init__(
        self,
        topology: Topology,
        patience: float = 30.0,
        silence: float = 10.0,
        guards: Sequence[bytes] = (),
        between: "Callable[[Pipeline], Awaitable[bool]] | None" = None,
        fail_over: float = FAIL_OVER,
    ) -> None:
        self._topology = topology
        self._patience = patience
        self._silence = silence
        self._waiting: deque[Call] = deque()
        self._in_flight: deque[Call] = deque()
        self._guards = guards
        self._between = between
        self._fail_over = fail_over
        self._refused: list[Call] = []  # to be repeated on the next connection
        self._refusal: RedisError | None = None
        self._is_leaving = False
        self._has_passed_on = False
        self._refusing = (0.0, 0.0)  # since when, and when last, by time.monotonic
        self._connection: Connection | None = None
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
        """Do `call` for a command in the protocol's form."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reply] = loop.create_future()
        self.resume(Call(command, answer, time.monotonic() + self._patience, home))
        self.commands += 1
        return answer

    def resume(self, call: Call) -> None:
        """Send a call behind all that wait."""
        loop = asyncio.get_running_loop()
        self._waiting.append(call)
        if not self._in_flight or len(self._waiting) >= _EARLY:
            self._write()
        if self._waiting and not self._flushing:
            self._flushing = True
            loop.call_soon(self._flush)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="redis pipeline")

    @property
    def is_idle(self) -> bool:
        """Whether nothing was written without an answer."""
        return not self._refused and not self._is_due()

    def give_up(self, homes: Collection[int]) -> list[Call]:
        """Remove the waiting calls of these homes; return them in order."""
        calls, self._waiting = self._waiting, deque()
        self._waiting.extend(call for call in calls if call.home not in homes)
        self._has_passed_on = bool(homes)
        return [call for call in calls if call.home in homes]

    def leave(self, *, at_once: bool) -> None:
        """Write nothing more on this connection and close it when the replies are there, or at once."""
        if self._connection:
            self._is_leaving = True
            if at_once:
                self._connection.cut(PrimaryMoved())
            self._leaves_server()

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
            if self._between and not await self._between(self):
                self._task = None
                return
            if self._has_passed_on:  # what was refused has gone to another primary; the other calls do not wait for it
                pause, self._has_passed_on = _FIRST_PAUSE, False
                continue
            await self._topology.pause(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _connect(self) -> Connection | None:
        try:
            connection = await self._topology.open(self._take, on_resume=self._write)
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

    async def _serve(self, connection: Connection) -> None:
        """Write commands and take replies until the connection is lost."""
        self._connection, self._is_leaving = connection, False
        watching = asyncio.create_task(self._watch(connection), name="redis silence")
        try:
            self._write()
            self._outage.failed(await connection.lost)
        finally:
            watching.cancel()
            self._connection = None
            connection.close()

    def _flush(self) -> None:
        self._flushing = False
        self._write()

    def _write(self) -> None:
        """Write the waiting commands, as far as the server reads them."""
        connection = self._connection
        if self._leaves_server():
            return
        while self._waiting and connection and not connection.paused and not connection.lost.done():
            connection.write(self._next_batch())

    def _next_batch(self) -> bytes:
        batch, size = self._guarding(), 0
        while self._waiting and size < _WRITE:
            call = self._waiting.popleft()
            batch.append(call.packed)
            size += len(call.packed)
            self._in_flight.append(call)
        return b"".join(batch)

    def _guarding(self) -> list[bytes]:
        """Return what goes before a batch: a replica may be promoted at any moment, and is noted before it is used."""
        connection = self._connection
        if not connection or not connection.is_replica:
            return []
        for guard in self._guards:
            answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(partial(_note_promotion, connection))
            self._in_flight.append(Call(guard, answer, 0.0))
        return list(self._guards)

    def _take(self, reply: Reply) -> None:
        """Pass a reply to the caller of the oldest command in flight."""
        self._answered += 1
        self._answer(self._in_flight.popleft(), reply)
        if self._refused or self._is_leaving:
            self._leaves_server()

    def _answer(self, call: Call, reply: Reply) -> None:
        if call.answer.done():
            return
        if not isinstance(reply, RedisError):
            call.answer.set_result(reply)
        elif may_pass(reply) and time.monotonic() < call.deadline and self._passes_soon():
            self._refused.append(call)
            self._refusal = reply
        else:
            call.answer.set_exception(fault_of(call, reply))

    # states in which the server refuses writes

    def _passes_soon(self) -> bool:
        """Note a refusal. Returns whether the state is so new that it may end with a fail-over."""
        now, (since, last) = time.monotonic(), self._refusing
        since = now if now - last > self._fail_over else since
        self._refusing = since, now
        return now - since < self._fail_over

    def _leaves_server(self) -> bool:
        """Leave a server that refuses writes or is not the primary of all calls any more, as soon as no reply is due.
        Returns whether nothing may be written.
        """
        if not (self._refused or self._is_leaving) or not self._connection:
            return False
        if not self._is_due():
            self._connection.cut(self._refusal if self._refused and self._refusal else PrimaryMoved())
        return True

    def _refuse_waiting(self, refusal: RedisError) -> None:
        self._outage.failed(refusal)
        if may_pass(refusal) and self._passes_soon():
            return
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            if not call.answer.done():
                call.answer.set_exception(fault_of(call, refusal))

    def _unanswered(self) -> list[Call]:
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

    async def _watch(self, connection: Connection) -> None:
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


def _note_promotion(connection: Connection, answer: "asyncio.Future[Reply]") -> None:
    if not answer.cancelled() and answer.exception() is None:
        connection.is_replica = False
