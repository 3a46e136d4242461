"""A process that puts tasks at a steady rate: `python -m bench.queue.processes.steady_puts REDIS_URL RATE`.

RATE tasks per second until it is asked to stop, each in its own lane and with the time of its put (ns) in the body. It
does not wait for the answer to the previous put.
"""

import asyncio
import sys
import time

from bench.queue.processes.samples import BODY, TUBE
from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce
from core.queue import QueueClient, connect


async def put_steadily(url: str, rate: float) -> None:
    stop, count = stop_requested(), 0
    async with connect(url) as client, asyncio.TaskGroup() as puts:
        announce(ready=True)
        began = time.monotonic()
        while not stop.is_set():
            puts.create_task(put(client, count))
            count += 1
            await asyncio.sleep(max(0.0, began + count / rate - time.monotonic()))
    announce(put=count)


async def put(client: QueueClient, n: int) -> None:
    await client.put(TUBE, f"{time.time_ns()} {BODY}"[: len(BODY)], lane=f"flow {n}", priority=1)


if __name__ == "__main__":
    asyncio.run(put_steadily(sys.argv[1], float(sys.argv[2])))
