"""One connection to Redis that batches commands: all commands of one turn of the event loop are written together.

    call ─▶ waiting ─▶ one write ─▶ server ─▶ replies in order ─▶ the callers' futures

Guarantee: commands are written and answered in the order of their calls. When the connection breaks, it is unknown
whether the commands in flight ran. Every command must therefore be safe to repeat: the pipeline repeats it on the next
connection until its deadline. After that the caller gets `StoreUnavailable`.
"""

import asyncio
import logging
import time
from collections import deque

from msgspec import Struct
from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from core.errors import StoreUnavailable
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.connection import Connection, Reply, ServerAddress, Word, encoded
from core.redis.outage_log import OutageLog

log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
# Bytes of one write. Beyond it the server answers the first commands while the last are still being written.
_WRITE = 256 * 1024
# Flush early at this many waiting calls, so the server works while we encode the next ones.
_EARLY = 8


class _Call(Struct, frozen=True, eq=False):
    """A command with its caller's future. `deadline`: monotonic seconds after which it is not repeated."""

    packed: bytes
    answer: asyncio.Future[Reply]
    deadline: float


class Pipeline:
    """`patience`: seconds for which a command is repeated over broken connections. `silence`: seconds without a reply,
    while replies are due, after which the connection is cut.
    """

    def __init__(self, address: ServerAddress, patience: float = 30.0, silence: float = 10.0) -> None:
        self._address = address
        self._patience = patience
        self._silence = silence
        self._waiting: deque[_Call] = deque()
        self._in_flight: deque[_Call] = deque()
        self._connection: Connection | None = None
        self._flushing = False
        self._task: asyncio.Task[None] | None = None
        self._answered = 0
        self._outage = OutageLog(log, "Redis does not answer")
        self.commands = 0

    def call(self, *command: Word) -> "asyncio.Future[Reply]":
        """Send a command that is safe to repeat. The future returns the reply, or raises ResponseError or
        StoreUnavailable.
        """
        return self.send(encoded(*command))

    def send(self, command: bytes) -> "asyncio.Future[Reply]":
        """`call` for a command in the protocol's form."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reply] = loop.create_future()
        self._waiting.append(_Call(command, answer, time.monotonic() + self._patience))
        self.commands += 1
        if not self._in_flight or len(self._waiting) >= _EARLY:
            self._write()
        if self._waiting and not self._flushing:
            self._flushing = True
            loop.call_soon(self._flush)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="redis pipeline")
        return answer

    async def close(self) -> None:
        """Close the connection. Callers whose reply is still due get StoreUnavailable."""
        if self._task:
            await cancel_and_wait(self._task)
        self._fail_all(StoreUnavailable("The connection to Redis was closed."))

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            if connection := await self._connect():
                pause = _FIRST_PAUSE
                await self._serve(connection)
            self._waiting.extendleft(reversed(self._in_flight))
            self._in_flight.clear()
            self._fail_expired()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _connect(self) -> Connection | None:
        try:
            connection = await Connection.open(self._address, self._take, on_resume=self._write)
        except (AuthenticationError, ResponseError) as fault:
            self._fail_all(StoreUnavailable(f"Redis refused the login: {fault}"))
        except (RedisError, OSError, TimeoutError) as fault:
            self._outage.failed(fault)
        else:
            self._outage.ended()
            return connection
        return None

    async def _serve(self, connection: Connection) -> None:
        """Write commands and take replies until the connection is lost."""
        self._connection = connection
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
        while self._waiting and connection and not connection.paused and not connection.lost.done():
            connection.write(self._next_batch())

    def _next_batch(self) -> bytes:
        batch, size = [], 0
        while self._waiting and size < _WRITE:
            call = self._waiting.popleft()
            batch.append(call.packed)
            size += len(call.packed)
            self._in_flight.append(call)
        return b"".join(batch)

    def _take(self, reply: Reply) -> None:
        """Pass a reply to the caller of the oldest command in flight."""
        call = self._in_flight.popleft()
        self._answered += 1
        if call.answer.done():
            return
        if isinstance(reply, RedisError):
            call.answer.set_exception(reply)
        else:
            call.answer.set_result(reply)

    async def _watch(self, connection: Connection) -> None:
        """Cut the connection when replies are due and none came for `silence` seconds."""
        while True:
            answered, are_due = self._answered, bool(self._in_flight)
            await asyncio.sleep(self._silence)
            if are_due and self._answered == answered:
                connection.cut(RedisTimeoutError(f"silent for {self._silence} s"))

    def _fail_expired(self) -> None:
        now = time.monotonic()
        expired = [call for call in self._waiting if call.deadline <= now]
        self._waiting = deque(call for call in self._waiting if call.deadline > now)
        _fail(expired, StoreUnavailable("Redis could not be reached in time; the call is safe to repeat."))

    def _fail_all(self, fault: StoreUnavailable) -> None:
        _fail([*self._in_flight, *self._waiting], fault)
        self._in_flight.clear()
        self._waiting.clear()


def _fail(calls: list[_Call], fault: StoreUnavailable) -> None:
    for call in calls:
        if not call.answer.done():
            call.answer.set_exception(fault)
