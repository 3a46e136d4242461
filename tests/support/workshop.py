"""The small API in a test: a `QueueClient` with its workers, and the handlers that most tests need."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from core.model.backoff import Backoff
from core.queue.client import Attempt, Handler, QueueClient, Result
from core.queue.worker import Worker
from core.redis.store import Store
from tests.support.stack import FLOOR, Stack
from tests.support.waiting import until

SOON = timedelta(seconds=5)
QUICK = Backoff(timedelta(milliseconds=5), timedelta(milliseconds=5))


class Shop:
    """A `QueueClient` and its workers, ended with the test."""

    def __init__(self, store: Store, client: str = "") -> None:
        self.work = QueueClient(store, client)
        self.workers: dict[Worker, asyncio.Task[None]] = {}

    async def open(self, handler: Handler, tube: str = "t", **options: object) -> Worker:
        worker = self.work.worker(tube, handler, **{"floor": FLOOR, **options})  # type: ignore[arg-type]
        self.workers[worker] = asyncio.create_task(worker.run())
        await until(lambda: worker.claims > 0)
        return worker

    async def close(self, worker: Worker) -> None:
        worker.stop()
        await asyncio.wait_for(self.workers.pop(worker), 10)

    async def end(self) -> None:
        for worker in list(self.workers):
            await self.close(worker)
        await self.work.close()


@pytest.fixture
async def shop(stack: Stack) -> AsyncIterator[Shop]:
    opened = Shop(stack.store)
    yield opened
    await opened.end()


def answering(result: Result) -> Handler:
    async def handler(job: Attempt) -> Result:
        return result

    return handler


async def echo(job: Attempt) -> str:
    return job.body.upper()
