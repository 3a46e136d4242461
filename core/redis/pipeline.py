"""One connection to Redis that batches by itself: what is asked in one turn of the event loop is written together.

    call() ─▶ waiting ─▶ flush ─▶ socket ─▶ server ─▶ socket ─▶ wire ─▶ the caller's future

Guarantee: commands are written in the order of their calls and answered in that order. When the connection breaks, what
was in flight is *unknown*; every command given to the pump must be safe to repeat, and the pump repeats it on the next
connection until its deadline. Then the caller gets `StoreUnavailable`.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from typing import Any

import hiredis
from msgspec import Struct
from redis.asyncio import Redis
from redis.asyncio.connection import Connection
from redis.exceptions import AuthenticationError, AuthorizationError, RedisError

from core.errors import StoreUnavailable
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.protocol import RedisProtocol

log = logging.getLogger(__name__)

Word = bytes | str | int | float
Reply = Any

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
# Bytes of one write: beyond it the server answers the first commands before the last are written.
_WRITE = 256 * 1024
# So many calls are not kept for the end of the turn: the server works on them while we make the next ones. Of 32 busy
# connections of an API process, a fifth of its time was waiting for the server before.
_EAGER = 8


def encoded(*command: Word) -> bytes:
    """A command as it goes over the wire."""
    words: bytes = hiredis.pack_command(command)  # type: ignore[arg-type] # its stub wants exactly one word
    return words


class _Call(Struct, frozen=True, eq=False):
    """A command on its way. `deadline`: monotonic seconds after which nobody waits any more."""

    packed: bytes
    answer: asyncio.Future[Reply]
    deadline: float


class Pipeline:
    """See the module. `patience`: seconds a command is repeated over broken connections; `silence`: seconds without an
    answer
    to anything in flight after which the connection is taken for dead."""

    def __init__(self, redis: Redis, patience: float = 30.0, silence: float = 10.0) -> None:
        self._redis = redis
        self._patience = patience
        self._silence = silence
        self._waiting: deque[_Call] = deque()
        self._in_flight: deque[_Call] = deque()
        self._wire: RedisProtocol | None = None
        self._flushing = False
        self._task: asyncio.Task[None] | None = None
        self._answered = 0
        self._watching: asyncio.TimerHandle | None = None
        self.commands = 0

    def call(self, *command: Word) -> "asyncio.Future[Reply]":
        """Send a command that is safe to repeat. The future brings the reply, or raises ResponseError or
        StoreUnavailable.
        """
        return self.send(encoded(*command))

    def send(self, command: bytes) -> "asyncio.Future[Reply]":
        """`call` for a command as it goes over the wire."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reply] = loop.create_future()
        self._waiting.append(_Call(command, answer, time.monotonic() + self._patience))
        self.commands += 1
        if not self._in_flight and self._wire:  # the server has nothing to do: it need not wait for the turn's end
            self._write()
        elif not self._flushing:
            self._flushing = True
            loop.call_soon(self._flush)
        elif len(self._waiting) >= _EAGER:
            self._write()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="redis pump")
        return answer

    async def close(self) -> None:
        """End. What is still under way is unknown to its callers."""
        if self._task:
            await cancel_and_wait(self._task)
        self._fail_all(StoreUnavailable("The connection to Redis was closed."))

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            connection = await self._connect()
            if connection:
                pause = _FIRST_PAUSE
                await self._serve(connection)
            self._waiting.extendleft(reversed(self._in_flight))
            self._in_flight.clear()
            self._give_up_late()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _connect(self) -> Connection | None:
        connection: Connection = self._redis.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            await asyncio.wait_for(connection.connect(), self._silence)  # type: ignore[no-untyped-call]
        except (AuthenticationError, AuthorizationError) as fault:
            self._fail_all(StoreUnavailable(f"Redis refuses us: {fault}"))
            return None
        except (RedisError, OSError, TimeoutError) as fault:
            log.warning("redis unreachable: %s", str(fault) or type(fault).__name__)
            return None
        return connection

    async def _serve(self, connection: Connection) -> None:
        """Write and read until the connection breaks."""
        self._wire = RedisProtocol(connection, self._take, self._write)
        try:
            self._write()
            log.warning("redis connection lost: %s", await self._wire.lost)
        finally:
            self._wire = None
            self._disarm()
            with contextlib.suppress(RedisError, OSError):
                await connection.disconnect(nowait=True)

    def _flush(self) -> None:
        """The end of the turn: write what waits."""
        self._flushing = False
        self._write()

    def _write(self) -> None:
        """Write what waits, as much as the server takes."""
        wire = self._wire
        while self._waiting and wire and not wire.paused and not wire.lost.done():
            wire.write(self._next_batch())
            self._arm()

    def _next_batch(self) -> bytes:
        batch, size = [], 0
        while self._waiting and size < _WRITE:
            call = self._waiting.popleft()
            batch.append(call.packed)
            size += len(call.packed)
            self._in_flight.append(call)
        return b"".join(batch)

    def _take(self, reply: Reply) -> None:
        """The answer to the oldest command in flight."""
        call = self._in_flight.popleft()
        self._answered += 1
        if call.answer.done():
            return
        if isinstance(reply, RedisError):
            call.answer.set_exception(reply)
        else:
            call.answer.set_result(reply)

    def _watch(self, answered: int) -> None:
        """End a connection on which nothing was answered for `silence` seconds although something was asked."""
        self._watching = None
        if not self._in_flight or not self._wire:
            return
        if self._answered == answered:
            self._wire.cut(f"silent for {self._silence} s")
            return
        self._arm()

    def _arm(self) -> None:
        if self._watching is None:
            self._watching = asyncio.get_running_loop().call_later(self._silence, self._watch, self._answered)

    def _disarm(self) -> None:
        """A watch is of one connection: it must not outlive it, or the next one would go unwatched."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    def _give_up_late(self) -> None:
        now = time.monotonic()
        kept = [call for call in self._waiting if call.deadline > now]
        for call in self._waiting:
            if call.deadline <= now and not call.answer.done():
                call.answer.set_exception(
                    StoreUnavailable("Redis could not be reached in time; what was asked may be repeated.")
                )
        self._waiting = deque(kept)

    def _fail_all(self, fault: StoreUnavailable) -> None:
        for call in [*self._in_flight, *self._waiting]:
            if not call.answer.done():
                call.answer.set_exception(fault)
        self._in_flight.clear()
        self._waiting.clear()
