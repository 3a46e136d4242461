"""bench queue latency: from put to the beginning of the handler, in another process, for tasks that come one by one."""

import asyncio
import time

from bench.harness.rows import Rows, percentile, verdict
from bench.queue.meter import spread
from bench.queue.sizes import Sizes
from bench.queue.stage import Stage, staged

RATE = 100
WANTED_MS = 2.0
_RUN_IN_MS = 500.0


async def measure(sizes: Sizes, rows: Rows) -> None:
    async with staged() as stage:
        lags = await lags_of(stage, sizes.latency_s)
    rows.show({"part": "latency", "n": len(lags), "rate_per_s": RATE, **spread("latency", lags)})
    worst = percentile(lags, 0.99)
    verdict("latency of a task at once, p99 ms", worst, f"≤ {WANTED_MS:g}", worst <= WANTED_MS)


async def lags_of(stage: Stage, seconds: float) -> list[float]:
    """The first half second, in which scripts are loaded, does not count."""
    worker, flow = await stage.start_worker(), await stage.start("flow", str(RATE))
    began = time.time() * 1000
    await asyncio.sleep(seconds + _RUN_IN_MS / 1000)
    put = (await stage.end(flow))["put"]
    await stage.all_done(put)
    lags = (await stage.end(worker))["lags"]
    return [lag for moment, lag in lags if moment >= began + _RUN_IN_MS]
