"""The small API in a test: a `Work` with its workers, and the handlers that most tests need."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from core.retry import Backoff
from core.store import Store
from core.work import Handler, Job, Result, Work
from core.worker import Worker
from tests.core.house import FLOOR, House
from tests.waiting import until

SOON = timedelta(seconds=5)
QUICK = Backoff(timedelta(milliseconds=5), timedelta(milliseconds=5))


class Shop:
    """A `Work` and its workers, ended with the test."""

    def __init__(self, store: Store, client: str = "") -> None:
        self.work = Work(store, client)
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
async def shop(house: House) -> AsyncIterator[Shop]:
    opened = Shop(house.store)
    yield opened
    await opened.end()


def answering(result: Result) -> Handler:
    async def handler(job: Job) -> Result:
        return result

    return handler


async def echo(job: Job) -> str:
    return job.body.upper()
