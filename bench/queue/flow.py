"""A process that puts one task after the other: `python -m bench.queue.flow REDIS_URL RATE`, until it is asked to end.

Each in a lane of its own and with the moment of its put as its body, whether or not the one before has been answered.
"""

import asyncio
import sys
import time

from bench.queue.samples import BODY, TUBE
from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce
from core.queue.client import QueueClient, connect


async def flow(url: str, rate: float) -> None:
    stop, count = stop_requested(), 0
    async with connect(url) as work, asyncio.TaskGroup() as puts:
        announce(ready=True)
        began = time.monotonic()
        while not stop.is_set():
            puts.create_task(put(work, count))
            count += 1
            await asyncio.sleep(max(0.0, began + count / rate - time.monotonic()))
    announce(put=count)


async def put(work: QueueClient, n: int) -> None:
    await work.put(TUBE, f"{time.time_ns()} {BODY}"[: len(BODY)], lane=f"flow {n}", priority=1)


if __name__ == "__main__":
    asyncio.run(flow(sys.argv[1], float(sys.argv[2])))
