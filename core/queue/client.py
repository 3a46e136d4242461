"""The queue as an application uses it. Nothing here needs knowledge of Redis (K-39).

    async with connect(url) as client:
        await client.put("reports", "42")
        answer = await client.call("sums", "[1, 2]")
        await client.worker("reports", handler, concurrency=100).run()

Handlers are described in `core.queue.executor`, the fields of a task in `core.queue.task.NewTask`.

Callers get the ends of their tasks without polling and without a loss (K-20, K-36):

    wait ─▶ the task's `reply` names this client ─▶ end ─▶ reply:{s}:<client> ─▶ stream reader ─▶ the waiting caller

An end stays in the stream until it is fetched, an hour at most: a process that restarts under the same client name
finds the ends that came meanwhile. What a client puts is also answered to ANYBODY: the ends of the last 10,000 tasks
of each shard, for callers that begin to wait after the end.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Unpack

from core.errors import AdaError, Invalid, NotFound, StoreError
from core.model.states import TaskState
from core.queue.checks import check_type
from core.queue.executor import Executor, Handler
from core.queue.queue import Queue
from core.queue.task import NewTask, TaskOptions
from core.queue.task_ids import split_id
from core.queue.tubes import Tubes
from core.queue.workers.worker import Worker, WorkerOptions
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.keyspace_events import ensure_notifications
from core.redis.server_checks import register, sign_layout
from core.redis.store import Store
from core.redis.stream_reader import StreamReader, entry_fields

# Ends that no caller has asked for yet; older ones are still in the stream.
_REMEMBERED = 10_000
# Entries of one read of a stream.
_PAGE = 500

ANYBODY = "anybody"
"""The client of no process: its stream has the ends of what clients have put, unless the answer has more than 1 KiB,
for whoever waits later (lua/queue/modules/task.lua)."""
_TIMEOUT = timedelta(seconds=30)
_DEFAULTS = WorkerOptions()


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

            def take(_: str, entry_id: str, fields: Mapping[str, str]) -> None:
                self._take_end((shard, fields["task"]), _reply(entry_id, fields))

            reader = StreamReader(self._store, {KEYS["reply"].at(shard, self.client): "0-0"}, take)
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


class CallFailed(AdaError):
    """The task of a call did not end as done; `end` holds its state and answer."""

    def __init__(self, end: TaskEnd) -> None:
        super().__init__(f"{end.state}: {end.answer}" if end.answer else str(end.state))
        self.end = end


class QueueClient:
    """One per process. `client`: a name under which the process gets the answers to its calls also after a restart."""

    def __init__(self, store: Store, client: str = "") -> None:
        self.store = store
        self.queue = Queue(store)
        self.tubes = Tubes(store)
        self.replies = CallReplies(store, self.queue, client or self.queue.ids.client)

    async def put(self, tube: str, body: str, **options: Unpack[TaskOptions]) -> str:
        """Add a task and return its id. Raises TypeError, Invalid."""
        return await self.queue.put(tube, NewTask(body, **options, reply=ANYBODY))

    async def put_many(self, tube: str, tasks: Sequence[NewTask]) -> list[str]:
        """Add tasks in this order and return their ids. Raises TypeError, Invalid before anything is written."""
        for task in tasks:
            check_type("put_many", "tasks", task, NewTask)
        return await self.queue.put_many(tube, [replace(task, reply=task.reply or ANYBODY) for task in tasks])

    async def ask(self, tube: str, body: str, **options: Unpack[TaskOptions]) -> str:
        """Add a task whose answer is fetched later with `answer`, also after a restart under the same name. Returns its
        id.
        """
        return await self.queue.put(tube, NewTask(body, **options, reply=self.replies.client))

    async def answer(self, task_id: str, timeout: timedelta = _TIMEOUT) -> str:
        """Wait for the answer to a task of `ask`. Raises CallFailed if it did not end as done; TimeoutError, with the
        task's state and last error.
        """
        _check_timeout(timeout)
        end = await self.replies.fetch(task_id, timeout)
        if end.state is not TaskState.DONE:
            raise CallFailed(end)
        return end.answer

    async def call(self, tube: str, body: str, timeout: timedelta = _TIMEOUT, **options: Unpack[TaskOptions]) -> str:
        """Add a task and wait for its answer (K-20). `expires` defaults to now + `timeout`, so that no worker starts a
        task whose caller has given up. Raises TypeError, Invalid; CallFailed; TimeoutError, with the task's state and
        last error: a task that is buried has not ended.
        """
        _check_timeout(timeout)
        options["expires"] = options.get("expires") or self.store.now() + timeout
        return await self.answer(await self.ask(tube, body, **options), timeout)

    async def wait(self, task_id: str, timeout: timedelta | None = None) -> TaskEnd:
        """Wait until a task ends, whichever process put it (K-36), or return how it has ended: what a client has put is
        remembered for an hour (the last 10,000 of a shard, with answers of at most 1 KiB), and as long as its tube says
        with `keep`. Raises TypeError; TimeoutError, with the task's state; NotFound.
        """
        if timeout is not None:
            _check_timeout(timeout)
        return await self.replies.wait(task_id, timeout)

    def worker(
        self,
        tube: str,
        handler: Handler,
        concurrency: int = 100,
        *,
        lease: timedelta = _DEFAULTS.lease,
        max_sleep: timedelta = _DEFAULTS.max_sleep,
        max_runtime: timedelta = _DEFAULTS.max_runtime,
        extends_blocked: bool = _DEFAULTS.extends_blocked,
    ) -> Worker:
        """Return a worker to `run()` and to `stop()`. It runs at most `concurrency` handlers at once and claims no task
        without a free one. A task whose handler runs longer than `max_runtime` goes to another worker, and so do all
        tasks if a handler blocks the event loop for longer than `lease`, unless `extends_blocked`.
        """
        options = WorkerOptions(lease, max_sleep, concurrency, concurrency, max_runtime, extends_blocked)
        return Executor(self.store, self.queue, self.tubes, tube, handler, options).worker

    async def close(self) -> None:
        """Stop reading replies."""
        await self.replies.close()


def _check_timeout(timeout: object) -> None:
    check_type("call", "timeout", timeout, timedelta)


@asynccontextmanager
async def connect(url: str, shards: int = 1, client: str = "") -> AsyncIterator[QueueClient]:
    """Open a connection and yield its client; set `notify-keyspace-events` if the server lacks our flags.

    Raises StoreUnavailable; SetupError; LayoutUnknown if the data are of another version.
    """
    store = await Store.open(url, shards)
    try:
        await sign_layout(store)
        await register(store)
        await ensure_notifications(store.command)
        queue_client = QueueClient(store, client)
        try:
            yield queue_client
        finally:
            await queue_client.close()
    finally:
        await store.close()
