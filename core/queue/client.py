"""The queue as an application uses it. Nothing here needs knowledge of Redis (K-39).

    async with connect(url) as client:
        await client.put("reports", "42")
        answer = await client.call("sums", "[1, 2]")
        await client.worker("reports", handler, concurrency=100).run()

Handlers are described in `core.queue.executor`, the fields of a task in `core.queue.task.NewTask`.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Unpack

from core.errors import AdaError
from core.model.states import TaskState
from core.queue.checks import check_type
from core.queue.executor import Executor, Handler
from core.queue.queue import Queue
from core.queue.replies import ANYBODY, CallReplies, TaskEnd
from core.queue.task import NewTask, TaskOptions
from core.queue.tubes import Tubes
from core.queue.workers.worker import Worker, WorkerOptions
from core.redis.keyspace_events import ensure_notifications
from core.redis.server_checks import register, sign_layout
from core.redis.store import Store

_TIMEOUT = timedelta(seconds=30)
_DEFAULTS = WorkerOptions()


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
        options["expires"] = options.get("expires") or self._now() + timeout
        return await self.answer(await self.ask(tube, body, **options), timeout)

    def _now(self) -> datetime:
        return datetime.now(UTC) + timedelta(milliseconds=self.store.clock_offset_ms)

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
