"""Returns the ends of tasks to the callers that wait for them (K-20, K-36), without polling and without a loss.

    wait ─▶ the task's `reply` names this client ─▶ end ─▶ reply:{s}:<client> ─▶ stream reader ─▶ the waiting caller

An end stays in the stream until it is fetched, an hour at most: a process that restarts under the same client name
finds the ends that came meanwhile. What a client puts is also answered to ANYBODY: the ends of the last 10,000 tasks
of each shard, for callers that begin to wait after the end.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from core.errors import Invalid, NotFound, StoreError
from core.model.states import TaskState
from core.queue.queue import Queue
from core.queue.task_ids import split_id
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import StreamReader, entry_fields

# Ends that no caller has asked for yet; older ones are still in the stream.
_REMEMBERED = 10_000
# Entries of one read of a stream.
_PAGE = 500

ANYBODY = "anybody"
"""The client of no process: its stream has the ends of what clients have put, unless the answer has more than 1 KiB,
for whoever waits later (lua/queue/modules/task.lua)."""


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """The end of a task: done, failed, cancelled or expired, and what its worker answered."""

    state: TaskState
    answer: str


@dataclass(frozen=True, slots=True)
class _Reply:
    entry: str
    end: TaskEnd


class CallReplies:
    """One per process. `client`: a name; with the same one a restarted process gets the answers to its old calls."""

    def __init__(self, store: Store, queue: Queue, client: str) -> None:
        if not client or not client.isprintable() or " " in client or client == ANYBODY:
            raise Invalid("CLIENT_MALFORMED", f"A client's name is one word, and not {ANYBODY!r}.", "client")
        self.client = client
        self._store = store
        self._queue = queue
        self._waiting: dict[tuple[int, str], set[asyncio.Future[_Reply]]] = defaultdict(set)
        self._unclaimed: dict[tuple[int, str], _Reply] = {}
        self._has_forgotten = False  # ends that are only in the stream
        self._readers: dict[int, asyncio.Task[None]] = {}

    async def wait(self, task_id: str, timeout: timedelta | None = None) -> TaskEnd:
        """Wait for the end of a task. Raises TimeoutError; NotFound TASK_NOT_FOUND if its end is not kept any more, or
        it never was.
        """
        shard, name = split_id(task_id)
        with self._expecting((shard, name)) as waiting:  # before the call: its end may come before the reply
            state, answer = await self._queue.notify_end(task_id, self.client)
            if state == "live" or waiting.done():
                return await self._end_of((shard, name), waiting, timeout)
        if state != "gone":
            return TaskEnd(TaskState(state), answer)
        if found := await self._in_stream(shard, self.client, name):
            return await self._take(shard, found)
        if found := await self._in_stream(shard, ANYBODY, name):
            return found.end
        raise NotFound("TASK_NOT_FOUND", "There is no such task, or it has ended and is not kept any more.")

    async def fetch(self, task_id: str, timeout: timedelta | None = None) -> TaskEnd:
        """Return the end of a task that was put with `reply=client`. Raises TimeoutError."""
        task = split_id(task_id)
        with self._expecting(task) as waiting:
            if (
                self._has_forgotten
                and not waiting.done()
                and (found := await self._in_stream(task[0], self.client, task[1]))
            ):
                return await self._take(task[0], found)
            return await self._end_of(task, waiting, timeout)

    @contextmanager
    def _expecting(self, task: tuple[int, str]) -> Iterator["asyncio.Future[_Reply]"]:
        """Yield a future that gets the end of this task. Any number of callers may expect one task."""
        waiting: asyncio.Future[_Reply] = asyncio.get_running_loop().create_future()
        if reply := self._unclaimed.pop(task, None):
            waiting.set_result(reply)
        self._waiting[task].add(waiting)
        try:
            yield waiting
        finally:
            self._waiting[task].discard(waiting)
            if not self._waiting[task]:
                del self._waiting[task]

    async def _end_of(
        self, task: tuple[int, str], waiting: "asyncio.Future[_Reply]", timeout: timedelta | None
    ) -> TaskEnd:
        self._read_on(task[0])
        try:
            async with asyncio.timeout(None if timeout is None else timeout.total_seconds()):
                reply = await waiting
        except TimeoutError:
            raise TimeoutError(f"The task has not ended within {timeout}: {await self._standing(*task)}.") from None
        return await self._take(task[0], reply)

    async def _standing(self, shard: int, name: str) -> str:
        """Return how a task stands, for the text of an error: `it is buried (ValueError: no such row)`."""
        try:
            task = await self._queue.inspector.view(shard, name)
        except NotFound:
            return "it is not there any more, and its end was not kept"
        except StoreError as fault:
            return str(fault)
        return f"it is {task.state}" + (f" ({task.error})" if task.error else "")

    async def _take(self, shard: int, reply: _Reply) -> TaskEnd:
        """Delete a fetched entry from the stream."""
        await self._store.command("XDEL", KEYS["reply"].at(shard, self.client), reply.entry)
        return reply.end

    async def _in_stream(self, shard: int, client: str, name: str) -> _Reply | None:
        """Search the stream of a client for the end of a task, from the last entry on."""
        stream, last = KEYS["reply"].at(shard, client), "+"
        while page := await self._store.command("XREVRANGE", stream, last, "-", "COUNT", _PAGE):
            for entry_id, flat in page:
                fields = entry_fields(flat)
                if fields["task"] == name:
                    return _reply(entry_id, fields)
            last = f"({page[-1][0]}"
        return None

    async def close(self) -> None:
        await cancel_and_wait(*self._readers.values())
        self._readers.clear()

    def _read_on(self, shard: int) -> None:
        """Read the stream from its beginning: it holds what an earlier process of this name did not fetch."""
        if shard not in self._readers:

            def take(entry_id: str, fields: Mapping[str, str]) -> None:
                self._take_end((shard, fields["task"]), _reply(entry_id, fields))

            reader = StreamReader(self._store, KEYS["reply"].at(shard, self.client), "0-0", take)
            self._readers[shard] = asyncio.create_task(reader.run(), name=f"replies to {self.client}")

    def _take_end(self, task: tuple[int, str], reply: _Reply) -> None:
        if expecting := [waiting for waiting in self._waiting.get(task, ()) if not waiting.done()]:
            for waiting in expecting:
                waiting.set_result(reply)
            return
        self._unclaimed[task] = reply
        if len(self._unclaimed) > _REMEMBERED:
            del self._unclaimed[next(iter(self._unclaimed))]
            self._has_forgotten = True


def _reply(entry_id: str, fields: Mapping[str, str]) -> _Reply:
    return _Reply(entry_id, TaskEnd(TaskState(fields["state"]), fields["answer"]))
