"""arq or SAQ with the same work as Ada's queue. Runs in its own virtual environment, so it imports nothing of Ada.

`python -m bench.peer_program arq|saq REDIS_URL …` with

put COUNT CALLERS   puts COUNT jobs, announces the seconds
work COUNT wait     waits for an element in the list GO, then announces the seconds until COUNT handlers have begun
work 0 now          announces the lags (ms) when it is asked to stop
flow COUNT RATE     puts RATE jobs per second, as bench.queue.programs

An announcement is a line of JSON.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Protocol

from redis.asyncio import Redis

GO = "bench:go"
BODY = ("There is no class with me today. " * 200)[:200]
CONCURRENCY = 200
POLL_S = 0.01
"""Seconds between two polls of arq. Its default is twice a second."""

Handle = Callable[[str], None]


class Peer(Protocol):
    """One of the queues. `put` adds a job with a body; `work` runs a worker until it is cancelled."""

    async def open(self, url: str) -> None: ...
    async def put(self, body: str) -> None: ...
    async def work(self, handle: Handle) -> None: ...


class Arq:
    """Keeps no results, as Ada keeps none."""

    async def open(self, url: str) -> None:
        from arq import create_pool
        from arq.connections import RedisSettings

        self._settings = RedisSettings.from_dsn(url)
        self._pool = await create_pool(self._settings)

    async def put(self, body: str) -> None:
        await self._pool.enqueue_job("job", body)

    async def work(self, handle: Handle) -> None:
        from arq.worker import Worker, func

        async def job(context: Any, body: str) -> None:
            handle(body)

        options = {"max_jobs": CONCURRENCY, "keep_result": 0, "poll_delay": POLL_S, "handle_signals": False}
        await Worker([func(job, name="job")], redis_settings=self._settings, **options).main()


class Saq:
    """Keeps no results (ttl -1)."""

    async def open(self, url: str) -> None:
        from saq import Queue

        self._queue = Queue.from_url(url)
        await self._queue.connect()

    async def put(self, body: str) -> None:
        await self._queue.enqueue("job", body=body, ttl=-1)

    async def work(self, handle: Handle) -> None:
        from saq import Worker

        async def job(context: Any, *, body: str) -> None:
            handle(body)

        Worker.SIGNALS = []  # this process handles its signals itself
        await Worker(self._queue, functions=[("job", job)], concurrency=CONCURRENCY).start()


def announce(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def stop_requested() -> asyncio.Event:
    """Return an event that SIGTERM sets."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    return stop


PEERS: Mapping[str, Callable[[], Peer]] = {"arq": Arq, "saq": Saq}


class CountingHandler:
    """Sets `all_begun` after `wanted` jobs, and records the lag of each job whose body begins with a time (ns)."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._begun = 0
        self.all_begun = asyncio.Event()
        self.lags: list[float] = []

    def __call__(self, body: str) -> None:
        self._begun += 1
        if self._begun == self._wanted:
            self.all_begun.set()
        if body[0].isdigit():
            self.lags.append((time.time_ns() - int(body.partition(" ")[0])) / 1e6)


async def put(peer: Peer, count: int, callers: int) -> None:
    async def put_some(numbers: Iterator[int]) -> None:
        for _ in numbers:
            await peer.put(BODY)

    numbers, began, cpu = iter(range(count)), time.perf_counter(), time.process_time()
    await asyncio.gather(*(put_some(numbers) for _ in range(callers)))
    announce(seconds=time.perf_counter() - began, cpu=time.process_time() - cpu)


async def work(peer: Peer, url: str, count: int, wait_for_go: bool) -> None:
    stop, handler = stop_requested(), CountingHandler(count)
    announce(ready=True)
    if wait_for_go:
        redis: Redis = Redis.from_url(url, socket_timeout=None)
        await redis.blpop([GO])
        await redis.aclose()
    began, cpu = time.perf_counter(), time.process_time()
    working = asyncio.ensure_future(peer.work(handler))
    if wait_for_go:
        await handler.all_begun.wait()
        announce(seconds=time.perf_counter() - began, cpu=time.process_time() - cpu)
    await stop.wait()
    announce(lags=handler.lags)
    working.cancel()
    await asyncio.wait([working], timeout=2)


async def flow(peer: Peer, count: int, rate: float) -> None:
    began, puts = time.monotonic(), set[asyncio.Future[None]]()
    for n in range(1, count + 1):
        puts.add(asyncio.ensure_future(peer.put(f"{time.time_ns()} {BODY}"[: len(BODY)])))
        await asyncio.sleep(max(0.0, began + n / rate - time.monotonic()))
    await asyncio.gather(*puts)
    announce(put=count)


async def run(name: str, url: str, what: str, count: int, how: str) -> None:
    peer = PEERS[name]()
    await peer.open(url)
    modes: Mapping[str, Callable[[], Awaitable[None]]] = {
        "put": lambda: put(peer, count, int(how)),
        "work": lambda: work(peer, url, count, how == "wait"),
        "flow": lambda: flow(peer, count, float(how)),
    }
    await modes[what]()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]))
