"""The workload, and Ada's queue under it: `python -m bench.queue.bullmq.ada_program lanes|no-lanes REDIS_URL …` with

put COUNT CALLERS PAGE    puts COUNT tasks, PAGE in each call; announces seconds and CPU seconds
flow COUNT RATE           puts RATE tasks per second, without waiting for the answer to the previous put
work FILE now             handles tasks until it is asked to stop, then announces the latencies (ms)
work FILE wait            begins when the list GO has an element; announces the CPU seconds since then

A handler parses the JSON and appends a line to FILE. `bullmq_program.js` does the same with the same bodies.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.queue.programs import work_until
from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce
from core.queue import Attempt, NewTask, QueueClient, connect

TUBE = "bench"
GO = "bench:go"
"""A worker that waits begins when this list has an element."""

CALLERS, CONCURRENCY, RATE = 32, 100, 100
_BODY_LENGTH, _TO_A_LANE = 200, 10


_TEXT = "x" * (_BODY_LENGTH + len("00") - len(json.dumps({"number": 0, "put": 0, "text": ""})))


@dataclass(frozen=True, slots=True)
class Workload:
    """`count`: tasks put and tasks handled in each round; `warm_up`: tasks put before anything is measured.
    `latency_s`: seconds for which tasks are put one by one.
    """

    count: int = 20_000
    warm_up: int = 200
    rounds: int = 5
    latency_s: float = 10.0


FULL, SHORT = Workload(), Workload(count=500, warm_up=50, rounds=1, latency_s=1.0)


def body(number: int) -> str:
    """Return JSON of 200 characters with the number of the task and the moment of its put (ns, monotonic clock)."""
    put = time.monotonic_ns()
    return json.dumps({"number": number, "put": put, "text": _TEXT[len(str(number)) + len(str(put)) :]})


def lane(number: int) -> str:
    """Return the lane of a task; ten consecutive tasks have the same one."""
    return f"user {number // _TO_A_LANE}"


Work = Callable[[QueueClient], Awaitable[None]]


def task(lanes: bool, number: int) -> NewTask:
    return NewTask(body(number), lane=lane(number) if lanes else "")


async def put(lanes: bool, count: int, callers: int, page: int, client: QueueClient) -> None:
    starts, began = iter(range(0, count, page)), time.perf_counter()
    cpu = time.process_time()
    await asyncio.gather(*(put_pages(lanes, starts, count, page, client) for _ in range(callers)))
    announce(seconds=time.perf_counter() - began, cpu=time.process_time() - cpu)


async def put_pages(lanes: bool, starts: Iterator[int], count: int, page: int, client: QueueClient) -> None:
    """Puts the next page until none is left; the callers share the iterator."""
    for start in starts:
        if page == 1:
            await client.put(TUBE, body(start), lane=lane(start) if lanes else "")
        else:
            await client.put_many(TUBE, [task(lanes, n) for n in range(start, min(start + page, count))])


async def flow(lanes: bool, count: int, rate: int, client: QueueClient) -> None:
    began = time.monotonic()
    async with asyncio.TaskGroup() as puts:
        for number in range(count):
            puts.create_task(put_pages(lanes, iter([number]), count, 1, client))
            await asyncio.sleep(max(0.0, began + (number + 1) / rate - time.monotonic()))
    announce(put=count)


async def work(url: str, file: Path, wait_for_go: bool, client: QueueClient) -> None:
    stop, latencies = stop_requested(), list[float]()
    with file.open("a", buffering=1) as lines:

        async def handle(attempt: Attempt) -> None:
            now = time.monotonic_ns()
            parsed = json.loads(attempt.body)
            latencies.append((now - parsed["put"]) / 1e6)
            lines.write(f"{parsed['number']}\n")

        worker = client.worker(TUBE, handle, CONCURRENCY)
        cpu = await work_until(stop, worker, url if wait_for_go else "")
    if wait_for_go:
        announce(cpu=cpu)
    else:
        announce(latencies=latencies)


async def run(lanes: bool, url: str, what: str, *args: str) -> None:
    verbs: Mapping[str, Callable[..., Work]] = {
        "put": lambda count, callers, page: partial(put, lanes, int(count), int(callers), int(page)),
        "flow": lambda count, rate: partial(flow, lanes, int(count), int(rate)),
        "work": lambda file, when: partial(work, url, Path(file), when == "wait"),
    }
    async with connect(url) as client:
        await verbs[what](*args)(client)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1] == "lanes", *sys.argv[2:]))
