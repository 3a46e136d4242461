"""A worker process whose handler does nothing: `python -m bench.queue.processes.worker REDIS_URL CONCURRENCY wait|now`.

With `wait` it connects and waits for an element in the list GO. A body that begins with a time (ns) is timed. When it
is asked to stop, it announces pairs (moment ms, lag ms) and the CPU seconds since it began to work.
"""

import asyncio
import sys
import time

from redis.asyncio import Redis

from bench.queue.processes.samples import TUBE
from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce
from core.queue import Attempt, Worker, connect

GO = "bench:go"


class LagHandler:
    """Records the lag of each task whose body begins with a time (ns)."""

    def __init__(self) -> None:
        self.lags: list[tuple[float, float]] = []

    async def __call__(self, attempt: Attempt) -> None:
        if attempt.body[0].isdigit():
            put = int(attempt.body.partition(" ")[0])
            self.lags.append((put / 1e6, (time.time_ns() - put) / 1e6))


async def run(url: str, concurrency: int, wait_for_go: bool) -> None:
    stop, handler = stop_requested(), LagHandler()
    async with connect(url) as client:
        worker = client.worker(TUBE, handler, concurrency)
        cpu = await work_until(stop, worker, url if wait_for_go else "")
        announce(lags=handler.lags, cpu=cpu)


async def work_until(stop: asyncio.Event, worker: Worker, url: str) -> float:
    """Run a worker until `stop`; return the CPU seconds since it began. With a `url` it begins at the signal there."""
    announce(ready=True)
    if url:
        await wait_for_signal(url)
    began = time.process_time()
    running = asyncio.create_task(worker.run())
    await stop.wait()
    worker.stop()
    await running
    return time.process_time() - began


async def wait_for_signal(url: str) -> None:
    redis: Redis = Redis.from_url(url, client_name="bench", socket_timeout=None)
    await redis.blpop([GO])
    await redis.aclose()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "wait"))
