"""Work: the queue as an application sees it. Nothing here speaks of Redis (K-39).

    async with connect(url) as work:
        await work.put("reports", "42")
        answer = await work.call("sums", "[1, 2]")
        await work.worker("reports", handler, concurrency=100).run()

A handler is a coroutine function that gets a `Attempt` and answers what became of it: None or a text (done, the text
being
the answer), or one of `Done`, `Failed`, `Retry`, `Bury`. What it raises is a retry, after the tube's back-off; after
the last attempt the task is buried. Before: whoever puts. After: `core.queue.worker`, which is the couriers' worker,
too.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from core.errors import AdaError
from core.model.states import TaskState
from core.queue.executor import Attempt, Bury, Done, Executor, Failed, Handler, Result, Retry
from core.queue.queue import Queue
from core.queue.replies import Replies, TaskEnd
from core.queue.task import NewTask, TaskFilter
from core.queue.tubes import Tube, Tubes
from core.queue.worker import Worker, WorkerOptions
from core.redis.server_checks import sign_layout
from core.redis.store import Store

__all__ = [
    "Attempt",
    "Bury",
    "CallFailed",
    "Done",
    "Failed",
    "Handler",
    "NewTask",
    "QueueClient",
    "Result",
    "Retry",
    "TaskEnd",
    "TaskFilter",
    "Tube",
    "connect",
]

_LEASE = timedelta(seconds=30)
_FLOOR = timedelta(seconds=3)
_PATIENCE = timedelta(seconds=30)
_LONGEST = timedelta(hours=1)


class CallFailed(AdaError):
    """A call's task did not end as done: `end` tells how."""

    def __init__(self, end: TaskEnd) -> None:
        super().__init__(f"{end.state}: {end.answer}" if end.answer else str(end.state))
        self.end = end


class QueueClient:
    """One per process. `client`: a name of its own, under which a restarted process gets the answers to its calls."""

    def __init__(self, store: Store, client: str = "") -> None:
        self._store = store
        self.queue = Queue(store)
        self.tubes = Tubes(store)
        self.replies = Replies(store, self.queue, client or self.queue.ids.client)

    async def put(self, tube: str, body: str, **options: Any) -> str:
        """Add a task; answers its id. The options are those of `NewTask`."""
        return await self.queue.put(tube, body, **options)

    async def put_many(self, tube: str, drafts: Sequence[NewTask]) -> list[str]:
        """Add tasks in their order; answers their ids."""
        return await self.queue.put_many(tube, drafts)

    async def ask(self, tube: str, body: str, **options: Any) -> str:
        """Add a task whose answer is fetched later, by its id, by `answer`: also after a restart under this name."""
        return await self.queue.put(tube, body, reply=self.replies.client, **options)

    async def answer(self, task_id: str, timeout: timedelta = _PATIENCE) -> str:
        """What its worker answered. Raises CallFailed if it did not end as done; TimeoutError."""
        end = await self.replies.fetch(task_id, timeout)
        if end.state is not TaskState.DONE:
            raise CallFailed(end)
        return end.answer

    async def call(self, tube: str, body: str, timeout: timedelta = _PATIENCE, **options: Any) -> str:
        """Have something done and wait for the answer (K-20). What nobody has begun within `timeout` expires, so that
        no answer comes too late. Raises CallFailed, TimeoutError.
        """
        now = datetime.now(UTC) + timedelta(milliseconds=self._store.clock_offset_ms)
        task_id = await self.ask(tube, body, **{"expires": now + timeout, **options})
        return await self.answer(task_id, timeout)

    async def wait(self, task_id: str, timeout: timedelta | None = None) -> TaskEnd:
        """How a task ended, whoever put it (K-36). Raises TimeoutError; NotFound if it has ended and is not kept."""
        return await self.replies.wait(task_id, timeout)

    def worker(
        self,
        tube: str,
        handler: Handler,
        concurrency: int = 100,
        *,
        lease: timedelta = _LEASE,
        floor: timedelta = _FLOOR,
        longest: timedelta = _LONGEST,
    ) -> Worker:
        """A worker to `run()` and to `stop()`. At most `concurrency` handlers are at work, and nothing is taken that
        none of them is free for. A handler at work for `longest` is taken for hung: its task goes to another.
        """
        attempts = Executor(self.queue, self.tubes, tube, handler, lease)
        pace = WorkerOptions(lease, floor, tasks=concurrency, entries=concurrency, longest=longest)
        worker = Worker(self._store, tube, attempts.attempt, pace=pace, hear=attempts.hear)
        attempts.stopping = lambda: worker.stopping
        return worker

    async def close(self) -> None:
        await self.replies.close()


@asynccontextmanager
async def connect(url: str, shards: int = 1, client: str = "") -> AsyncIterator[QueueClient]:
    """A connection of one's own. Raises SetupError; LayoutUnknown if another version's data are there."""
    store = await Store.open(url, shards)
    try:
        await sign_layout(store)
        work = QueueClient(store, client)
        try:
            yield work
        finally:
            await work.close()
    finally:
        await store.close()
