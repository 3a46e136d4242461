"""Hears how tasks end, for those who wait for it (K-20, K-36): no polling, nothing missed.

    wait ─▶ the task's `reply` names this client ─▶ end ─▶ reply:{s}:<client> ─▶ reader ─▶ whoever waits

An answer stays in the stream until it was fetched, an hour at most: who starts again under the same client name finds
what came meanwhile.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta

from redis.exceptions import RedisError

from core.errors import Invalid, NotFound, StoreError
from core.model.states import TaskState
from core.queue.queue import Queue
from core.queue.task import split_id
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import entries

log = logging.getLogger(__name__)

_BLOCK_MS = 5000
_COUNT = 500
_PAUSE = 0.2
# Ends that nobody asked for yet; older ones are still in the stream.
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """How a task ended: done, failed, cancelled or expired, and what its worker answered."""

    state: TaskState
    answer: str


@dataclass(frozen=True, slots=True)
class _Reply:
    entry: str
    end: TaskEnd


class Replies:
    """One per process. `client`: a name; with the same one a restarted process gets the answers to its old calls."""

    def __init__(self, store: Store, queue: Queue, client: str) -> None:
        if not client or not client.isprintable() or " " in client:
            raise Invalid("CLIENT_MALFORMED", "A client's name is one word.", "client")
        self.client = client
        self._store = store
        self._queue = queue
        self._waiting: dict[tuple[int, str], asyncio.Future[_Reply]] = {}
        self._heard: dict[tuple[int, str], _Reply] = {}
        self._readers: dict[int, asyncio.Task[None]] = {}

    async def wait(self, task_id: str, timeout: timedelta | None = None) -> TaskEnd:
        """Wait for the end of a task. Raises TimeoutError; NotFound TASK_NOT_FOUND if it is not kept or never was."""
        shard, name = split_id(task_id)
        state, answer = await self._queue.wait(task_id, self.client)
        if state == "live":
            return await self.fetch(task_id, timeout)
        if state != "gone":
            return TaskEnd(TaskState(state), answer)
        if found := await self._in_stream(shard, name):
            return await self._take(shard, found)
        raise NotFound("TASK_NOT_FOUND", "There is no such task.")

    async def fetch(self, task_id: str, timeout: timedelta | None = None) -> TaskEnd:
        """The end of a task that was put with `reply=client`. Raises TimeoutError."""
        shard, name = split_id(task_id)
        self._read_on(shard)
        heard = self._heard.pop((shard, name), None)
        if heard is None:
            waiting = self._waiting[shard, name] = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(timeout.total_seconds() if timeout else None):
                    heard = await waiting
            finally:
                self._waiting.pop((shard, name), None)
        return await self._take(shard, heard)

    async def _take(self, shard: int, heard: _Reply) -> TaskEnd:
        """What was fetched leaves the stream."""
        await self._store.command("XDEL", KEYS["reply"].at(shard, self.client), heard.entry)
        return heard.end

    async def _in_stream(self, shard: int, name: str) -> _Reply | None:
        page = await self._store.command("XRANGE", KEYS["reply"].at(shard, self.client), "-", "+")
        for entry, fields in page:
            told = dict(zip(fields[::2], fields[1::2], strict=True)) if isinstance(fields, list) else fields
            if told["task"] == name:
                return _Reply(entry, TaskEnd(TaskState(told["state"]), told["answer"]))
        return None

    async def close(self) -> None:
        await cancel_and_wait(*self._readers.values())
        self._readers.clear()

    def _read_on(self, shard: int) -> None:
        if shard not in self._readers:
            self._readers[shard] = asyncio.create_task(self._read(shard), name=f"replies to {self.client}")

    async def _read(self, shard: int) -> None:
        """From the beginning: what an earlier process of this name did not fetch is there."""
        name, last = KEYS["reply"].at(shard, self.client), "0-0"
        while True:
            try:
                found = await self._store.redis.xread({name: last}, count=_COUNT, block=_BLOCK_MS)
            except (RedisError, OSError, TimeoutError, StoreError) as fault:
                log.warning("replies not read, again in %s s: %s", _PAUSE, fault)
                await asyncio.sleep(_PAUSE)
                continue
            for entry, fields in entries(found):
                last = entry
                self._hear(
                    (shard, fields["task"]), _Reply(entry, TaskEnd(TaskState(fields["state"]), fields["answer"]))
                )

    def _hear(self, task: tuple[int, str], heard: _Reply) -> None:
        waiting = self._waiting.get(task)
        if waiting and not waiting.done():
            waiting.set_result(heard)
            return
        self._heard[task] = heard
        if len(self._heard) > _REMEMBERED:
            del self._heard[next(iter(self._heard))]
