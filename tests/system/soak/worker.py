"""A worker process of the soak: three tubes through the API of `core.queue.client`, every run in the journal.

python -m tests.system.soak.worker URL DIRECTORY NAME LEASE_MS
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from cli.processes.supervisor import announce
from core.queue import Attempt, Bury, Done, Failed, QueueClient, Result, Retry, Worker
from core.redis.store import Store
from tests.system.soak.journal import Journal
from tests.system.soak.plan import CALLS, PARKED, STRICT
from tests.system.soak.version import version_facts

CONCURRENCY = 20
GRACE = timedelta(milliseconds=500)


def number_of(token: Any) -> int:
    """Return the number of a token: the order of the claims. The owner follows it."""
    return int(str(token).partition(" ")[0])


class JournalingStore(Store):
    """Writes the reply of each settle to the journal (any reply but `stale` accepts the run), and each release."""

    journal: Journal

    async def run(self, name: str, shard: int, *arguments: Any) -> Any:
        if name == "release":
            self.journal.write("releasing", token=number_of(arguments[1]))
        sent = time.monotonic_ns()
        answer = await super().run(name, shard, *arguments)
        if name == "settle":
            width = len(arguments) // len(answer)
            for n, reply in enumerate(answer):
                _, token, result, *_ = arguments[n * width : (n + 1) * width]
                self.journal.write("settled", token=number_of(token), result=result, sent=sent, reply=reply)
        return answer


class Handler:
    """Runs the plan in the body of a task, step by step."""

    def __init__(self, journal: Journal, lease: float) -> None:
        self._journal = journal
        self._lease = lease

    async def __call__(self, job: Attempt) -> Result:
        body, task = json.loads(job.body), job.task
        step = body["step"] + int(job.checkpoint or 0)
        token = number_of(task.token)
        self._journal.write("start", task=task.task_id, token=token, n=body["n"], step=step, claimed=task.claimed)
        result = await self._do(job, body, step)
        self._journal.write("end", token=token, result=type(result).__name__)
        return result

    async def _do(self, job: Attempt, body: dict[str, Any], step: int) -> Result:
        wanted, token = body["plan"][step], job.task.token
        await asyncio.sleep(self._lease * 1.5 if wanted == "long" else body["takes"])
        match wanted:
            case "retry":
                return Retry(timedelta(milliseconds=50), checkpoint=str(int(job.checkpoint or 0) + 1))
            case "change":
                return Retry(timedelta(0), body=json.dumps({**body, "step": body["step"] + 1}))
            case "bury":
                await job.save(str(int(job.checkpoint or 0) + 1))
                return Bury()
            case "fail":
                return Failed(token)
            case _:
                return Done(token)


async def echo(job: Attempt) -> str:
    return job.body[::-1]


async def work(url: str, directory: Path, name: str, lease: timedelta) -> None:
    store = await JournalingStore.open(url, patience=60)
    assert isinstance(store, JournalingStore)
    store.journal = Journal(directory, name)
    works = QueueClient(store)
    handler = Handler(store.journal, lease.total_seconds())
    floor = timedelta(seconds=1)
    workers = [works.worker(tube, handler, CONCURRENCY, lease=lease, max_sleep=floor) for tube in (STRICT, PARKED)]
    workers.append(works.worker(CALLS, echo, CONCURRENCY, lease=lease, max_sleep=floor))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _stop, workers)
    running = [asyncio.create_task(worker.run()) for worker in workers]
    announce(**version_facts())
    await asyncio.gather(*running)
    await works.close()
    await store.close()


def _stop(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.stop(GRACE)


if __name__ == "__main__":
    _, url, directory, name, lease_ms = sys.argv
    asyncio.run(work(url, Path(directory), name, timedelta(milliseconds=int(lease_ms))))
