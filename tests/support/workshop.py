"""A `QueueClient` with its workers, and the handlers that most tests need."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from core.model.clock import Backoff
from core.queue import Attempt, Handler, QueueClient, Result, Worker
from core.redis.store import Store
from tests.support.stack import FLOOR, Stack
from tests.support.waiting import until

SOON = timedelta(seconds=20)
QUICK = Backoff(timedelta(milliseconds=5), timedelta(milliseconds=5))


class Workshop:
    """A `QueueClient` and its workers, as one process has them. `close` stops them."""

    def __init__(self, store: Store, client: str = "") -> None:
        self.client = QueueClient(store, client)
        self.workers: dict[Worker, asyncio.Task[None]] = {}

    async def start_worker(
        self,
        handler: Handler,
        tube: str = "t",
        *,
        concurrency: int = 100,
        lease: timedelta = timedelta(seconds=30),
        max_sleep: timedelta = FLOOR,
        max_runtime: timedelta = timedelta(hours=1),
    ) -> Worker:
        """Start a worker; it has claimed once when this returns."""
        worker = self.client.worker(
            tube, handler, concurrency, lease=lease, max_sleep=max_sleep, max_runtime=max_runtime
        )
        self.workers[worker] = asyncio.create_task(worker.run())
        await until(lambda: worker.claims > 0)
        return worker

    async def stop_worker(self, worker: Worker) -> None:
        """Stop a worker and wait until its tasks are finished."""
        worker.stop()
        await asyncio.wait_for(self.workers.pop(worker), 20)

    async def close(self) -> None:
        for worker in list(self.workers):
            await self.stop_worker(worker)
        await self.client.close()


@pytest.fixture
async def workshop(stack: Stack) -> AsyncIterator[Workshop]:
    opened = Workshop(stack.store)
    yield opened
    await opened.close()


def returning(result: Result) -> Handler:
    """Return a handler that returns `result`."""

    async def handler(attempt: Attempt) -> Result:
        return result

    return handler


async def echo(attempt: Attempt) -> str:
    """Return the body in capitals; a handler."""
    return attempt.body.upper()
