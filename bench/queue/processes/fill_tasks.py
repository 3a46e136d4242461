"""A process that puts tasks.

`python -m bench.queue.processes.fill_tasks REDIS_URL TUBE SHAPE FIRST END TOTAL DUE_MS CALLERS PAGE`

Puts the tasks FIRST to END of TOTAL tasks of one shape, with CALLERS concurrent callers and PAGE tasks in each call.
Announces the seconds and the CPU seconds.
"""

import asyncio
import sys
import time
from collections.abc import Iterator

from bench.queue.processes.samples import SHAPES, Shape
from cli.processes.supervisor import announce
from core.queue import QueueClient
from core.redis.store import Store


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


if __name__ == "__main__":
    first, end, total, due_ms, callers, page = (int(arg) for arg in sys.argv[4:10])
    asyncio.run(fill(sys.argv[1], sys.argv[2], SHAPES[sys.argv[3]], range(first, end, page), total, due_ms, callers))
