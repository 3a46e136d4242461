"""The machine's own lateness: a process with nothing but a timer, `python -m bench.baselines.timer FIRST COUNT
SPACING` (ms).

It sleeps until FIRST (Unix ms), and so on COUNT times every SPACING, and announces how late it woke each time.
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
