"""A worker process whose handler does nothing: `python -m bench.queue.worker REDIS_URL CONCURRENCY held|free`.

A held one connects and waits for a word in the list GO. A body that begins with a moment (ns) is timed; the pairs
(moment ms, lag ms) are announced when it is asked to end, with the seconds of CPU since it began to work.
"""

import asyncio
import sys
import time

from redis.asyncio import Redis

from bench.queue.samples import TUBE
from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce
from core.queue.client import Attempt, connect

GO = "bench:go"


class Clock:
    """The handler."""

    def __init__(self) -> None:
        self.lags: list[tuple[float, float]] = []

    async def __call__(self, job: Attempt) -> None:
        if job.body[0].isdigit():
            put = int(job.body.partition(" ")[0])
            self.lags.append((put / 1e6, (time.time_ns() - put) / 1e6))


async def run(url: str, concurrency: int, held: bool) -> None:
    stop, clock = stop_requested(), Clock()
    async with connect(url) as work:
        worker = work.worker(TUBE, clock, concurrency)
        announce(ready=True)
        if held:
            await gone(url)
        began = time.process_time()
        running = asyncio.create_task(worker.run())
        await stop.wait()
        worker.stop()
        await running
        announce(lags=clock.lags, cpu=time.process_time() - began)


async def gone(url: str) -> None:
    redis: Redis = Redis.from_url(url, client_name="bench", socket_timeout=None)
    await redis.blpop([GO])
    await redis.aclose()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "held"))
