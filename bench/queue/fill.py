"""A process that puts tasks: `python -m bench.queue.fill REDIS_URL TUBE SHAPE FIRST END MANY AT CALLERS PAGE`.

The numbers from FIRST to END of MANY tasks of one shape, by so many callers at once, PAGE in each call. Announces its
seconds and those of CPU.
"""

import asyncio
import sys
import time
from collections.abc import Iterator

from bench.queue.samples import SHAPES, Shape
from cli.processes.supervisor import announce
from core.queue.client import QueueClient
from core.redis.store import Store


async def fill(url: str, tube: str, shape: Shape, share: range, many: int, at: int, callers: int) -> None:
    """The step of `share` is the page."""
    store = await Store.open(url)
    work, pages = QueueClient(store), iter(share)
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(put_pages(work, tube, shape, pages, share, many, at) for _ in range(callers)))
    announce(seconds=time.perf_counter() - began, cpu=time.process_time() - cpu)
    await work.close()
    await store.close()


async def put_pages(
    work: QueueClient, tube: str, shape: Shape, pages: Iterator[int], share: range, many: int, at: int
) -> None:
    """Takes pages that nobody else has taken."""
    for start in pages:
        if share.step == 1:
            draft = shape(start, many, at)
            await work.put(tube, draft.body, lane=draft.lane)
        else:
            end = min(start + share.step, share.stop)
            await work.put_many(tube, [shape(n, many, at) for n in range(start, end)])


if __name__ == "__main__":
    first, end, many, at, callers, page = (int(word) for word in sys.argv[4:10])
    asyncio.run(fill(sys.argv[1], sys.argv[2], SHAPES[sys.argv[3]], range(first, end, page), many, at, callers))
