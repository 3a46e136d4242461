"""bench queue latency: from put to the start of the handler in another process, for tasks that arrive one by one."""

import asyncio
import time

from bench.harness.measurements import latency_columns
from bench.harness.report import Rows, percentile, report_target
from bench.queue.queue_environment import QueueEnvironment, queue_environment
from bench.queue.sizes import Sizes

RATE = 100
TARGET_MS = 2.0
_WARM_UP_MS = 500.0


async def measure(sizes: Sizes, rows: Rows) -> None:
    async with queue_environment() as env:
        lags = await measure_lags(env, sizes.latency_s)
    rows.show({"part": "latency", "n": len(lags), "rate_per_s": RATE, **latency_columns("latency", lags)})
    p99 = percentile(lags, 0.99)
    report_target("latency of a task that is due at once, p99 ms", p99, f"≤ {TARGET_MS:g}", p99 <= TARGET_MS)


async def measure_lags(env: QueueEnvironment, seconds: float) -> list[float]:
    """Returns the lags in ms, without those of the first half second, in which scripts are loaded."""
    worker, puts = await env.start_worker(), await env.start("steady_puts", str(RATE))
    began = time.time() * 1000
    await asyncio.sleep(seconds + _WARM_UP_MS / 1000)
    await env.all_done((await env.stop(puts))["put"])
    lags = (await env.stop(worker))["lags"]
    return [lag for moment, lag in lags if moment >= began + _WARM_UP_MS]
