"""Measures how late the machine itself wakes a process: `python -m bench.baselines.timer FIRST COUNT SPACING`.

Sleeps until FIRST (Unix ms), then COUNT times in all every SPACING ms, and announces how late (ms) it woke each time.
"""

import asyncio
import sys
import time

from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce


async def wake(first: int, count: int, spacing: int) -> None:
    stop = stop_requested()
    lags = []
    for moment in range(first, first + count * spacing, spacing):
        await asyncio.sleep(moment / 1000 - time.time())
        lags.append(time.time() * 1000 - moment)
    announce(lags=lags)
    await stop.wait()


if __name__ == "__main__":
    asyncio.run(wake(*map(int, sys.argv[1:])))
