"""The tasks that `bench queue` puts, and the processes that put and do them.

`python -m bench.queue.programs PROGRAM REDIS_URL …` with

    fill TUBE SHAPE FIRST END TOTAL DUE_MS CALLERS PAGE
        puts the tasks FIRST to END of TOTAL tasks of one shape, with CALLERS concurrent callers and PAGE tasks in each
        call; announces the seconds and the CPU seconds
    steady_puts RATE
        puts RATE tasks per second until it is asked to stop, each in its own lane and with the time of its put (ns) in
        the body; does not wait for the answer to the previous put
    worker CONCURRENCY wait|now
        a worker whose handler does nothing; with `wait` it connects and waits for an element in the list GO. A body
        that begins with a time (ns) is timed. Asked to stop, it announces pairs (moment ms, lag ms) and the CPU seconds
        since it began to work
    pings
        sends PINGs; announces pairs (moment ms, ms until the answer) when it is asked to stop
    trivial SECONDS
        runs the smallest function there is, pipelined; announces calls per second. `raw`: the same bytes again and
        again, replies are only counted, so the server is the limit. `redis_py`: pipelines of the library, the most that
        a Python program reaches with it
"""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import SplitResult, unquote, urlsplit

import hiredis
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce
from core.queue import Attempt, NewTask, QueueClient, Worker, connect
from core.redis.store import Store

TUBE = "bench"
GO = "bench:go"
"""A worker that waits begins when this list has an element."""

BODY = ("There is no class with me today. " * 200)[:200]
USER = "42"
_TO_A_LANE = 10
_TENANTS = 4
_FAR_DAYS, _SOON_MS = 30, 100

Shape = Callable[[int, int, int], NewTask]
"""(number, total number of tasks, due time in Unix ms) → the task."""


def plain(n: int, total: int, due_ms: int) -> NewTask:
    return NewTask(BODY)


def own(n: int, total: int, due_ms: int) -> NewTask:
    """Return each in its own lane."""
    return NewTask(BODY, lane=f"user {n}")


def pairs(n: int, total: int, due_ms: int) -> NewTask:
    """Return a task of a lane with two; all first ones come before all second ones."""
    return NewTask(BODY, lane=f"user {n % max(1, total // 2)}")


def tens(n: int, total: int, due_ms: int) -> NewTask:
    """Return a task of a lane with ten; the lanes take turns."""
    return NewTask(BODY, lane=f"user {n % max(1, total // _TO_A_LANE)}")


def one(n: int, total: int, due_ms: int) -> NewTask:
    """Return all in one lane, of one user."""
    return NewTask(BODY, lane="one", user=USER)


def due(n: int, total: int, due_ms: int) -> NewTask:
    """Return all due at the same moment, each in its own lane (K-07)."""
    return NewTask(BODY, lane=f"user {n}", due=_due(due_ms))


def soon(n: int, total: int, due_ms: int) -> NewTask:
    return NewTask(BODY, lane=f"user {n}", due=datetime.now(UTC) + timedelta(milliseconds=_SOON_MS))


def far(n: int, total: int, due_ms: int) -> NewTask:
    """Return a task that is due in a month, no two at the same moment, all of one user."""
    return NewTask(BODY, lane=f"user {n}", user=USER, due=_due(due_ms, n))


def marked(n: int, total: int, due_ms: int) -> NewTask:
    """Return a task with every field by which a task can be found."""
    return NewTask(
        BODY, tenant=f"t{n % _TENANTS}", lane=f"user {n}", user=f"{n}", kind="message.text", tags=["mailing 7"]
    )


def mixed(n: int, total: int, due_ms: int) -> NewTask:
    """Return the shapes in turn; deferred tasks are due very soon."""
    shapes: tuple[Shape, ...] = (plain, own, tens, marked, soon)
    return shapes[n % len(shapes)](n, total, due_ms)


SHAPES: Mapping[str, Shape] = {
    shape.__name__: shape for shape in (plain, own, pairs, tens, one, due, far, marked, mixed)
}


def _due(due_ms: int, n: int = 0) -> datetime:
    if due_ms:
        return datetime.fromtimestamp(due_ms / 1000, UTC)
    return datetime.now(UTC) + timedelta(days=_FAR_DAYS, milliseconds=n)


async def fill(url: str, tube: str, shape: Shape, numbers: range, total: int, due_ms: int, callers: int) -> None:
    """Put the tasks. `numbers` has the page size as its step."""
    store = await Store.open(url)
    client, pages = QueueClient(store), iter(numbers)
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(put_pages(client, tube, shape, pages, numbers, total, due_ms) for _ in range(callers)))
    announce(seconds=time.perf_counter() - began, cpu=time.process_time() - cpu)
    await client.close()
    await store.close()


async def put_pages(
    client: QueueClient, tube: str, shape: Shape, pages: Iterator[int], numbers: range, total: int, due_ms: int
) -> None:
    """Puts the next page until none is left; the callers share the iterator."""
    for start in pages:
        if numbers.step == 1:
            task = shape(start, total, due_ms)
            await client.put(tube, task.body, lane=task.lane)
        else:
            end = min(start + numbers.step, numbers.stop)
            await client.put_many(tube, [shape(n, total, due_ms) for n in range(start, end)])


async def put_steadily(url: str, rate: float) -> None:
    stop, count = stop_requested(), 0
    async with connect(url) as client, asyncio.TaskGroup() as puts:
        announce(ready=True)
        began = time.monotonic()
        while not stop.is_set():
            puts.create_task(put_timed(client, count))
            count += 1
            await asyncio.sleep(max(0.0, began + count / rate - time.monotonic()))
    announce(put=count)


async def put_timed(client: QueueClient, n: int) -> None:
    await client.put(TUBE, f"{time.time_ns()} {BODY}"[: len(BODY)], lane=f"flow {n}", priority=1)


class LagHandler:
    """Records the lag of each task whose body begins with a time (ns)."""

    def __init__(self) -> None:
        self.lags: list[tuple[float, float]] = []

    async def __call__(self, attempt: Attempt) -> None:
        if attempt.body[0].isdigit():
            put = int(attempt.body.partition(" ")[0])
            self.lags.append((put / 1e6, (time.time_ns() - put) / 1e6))


async def work(url: str, concurrency: int, wait_for_go: bool) -> None:
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
    redis: AsyncRedis = AsyncRedis.from_url(url, client_name="bench", socket_timeout=None)
    await redis.blpop([GO])
    await redis.aclose()


_PAUSE = 0.002


def send_pings(url: str) -> None:
    stop_signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop_signals.append(number))
    waits: list[tuple[float, float]] = []
    with Redis.from_url(url, client_name="bench") as redis:
        redis.ping()
        announce(ready=True)
        while not stop_signals:
            moment, began = time.time() * 1000, time.perf_counter()
            redis.ping()
            waits.append((moment, (time.perf_counter() - began) * 1000))
            time.sleep(_PAUSE)
    announce(waits=waits)


_NAME = "trivial"
_LIBRARY = f"""#!lua name={_NAME}
redis.register_function('{_NAME}', function() return 1 end)
"""
_BATCH = 500
_REPLY = b":1\r\n"


def raw(url: str, seconds: float) -> float:
    """Keeps one batch on its way while the previous one is answered."""
    target = urlsplit(url)
    assert target.password
    batch = hiredis.pack_command(("FCALL", _NAME, "1", "{0}", "1")) * _BATCH  # type: ignore[arg-type]
    with _open_socket(target) as connection:
        connection.sendall(hiredis.pack_command(("AUTH", target.password)))  # type: ignore[arg-type]
        connection.recv(100)
        connection.sendall(batch)
        calls, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            connection.sendall(batch)
            _receive(connection, len(_REPLY) * _BATCH)
            calls += _BATCH
        return calls / (time.perf_counter() - began)


def _open_socket(target: SplitResult) -> socket.socket:
    if target.scheme != "unix":
        return socket.create_connection((target.hostname, target.port or 6379))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(unquote(target.path))
    return connection


def _receive(connection: socket.socket, size: int) -> None:
    while size > 0:
        size -= len(connection.recv(min(size, 65536)))


def redis_py(redis: Redis, seconds: float) -> float:
    calls, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        with redis.pipeline(transaction=False) as pipe:
            for _ in range(_BATCH):
                pipe.fcall(_NAME, 1, "{0}", "1")
            pipe.execute()
        calls += _BATCH
    return calls / (time.perf_counter() - began)


def call_trivial(url: str, seconds: float) -> None:
    with Redis.from_url(url, client_name="bench") as redis:
        redis.function_load(_LIBRARY, replace=True)
        announce(raw=raw(url, seconds), redis_py=redis_py(redis, seconds))


PROGRAMS: Mapping[str, Callable[..., None]] = {
    "fill": lambda url, tube, shape, first, end, total, due_ms, callers, page: asyncio.run(
        fill(url, tube, SHAPES[shape], range(int(first), int(end), int(page)), int(total), int(due_ms), int(callers))
    ),
    "steady_puts": lambda url, rate: asyncio.run(put_steadily(url, float(rate))),
    "worker": lambda url, concurrency, when: asyncio.run(work(url, int(concurrency), when == "wait")),
    "pings": send_pings,
    "trivial": lambda url, seconds: call_trivial(url, float(seconds)),
}


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
