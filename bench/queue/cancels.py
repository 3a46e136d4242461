"""bench queue cancel: all tasks of one user, in pages, while the tasks of others are put, taken and done."""

import asyncio
import time
from dataclasses import dataclass

from bench.harness.rows import Row, Rows, percentile, verdict
from bench.queue.meter import NOTED_US, Timings, spread, timed
from bench.queue.samples import USER
from bench.queue.sizes import Sizes
from bench.queue.stage import Stage, staged, within
from cli.command import NotDone
from core.queue.task import TaskFilter

LONGEST_MS, LATER_MS = 10.0, 10.0
RATE = 100
SHAPES = {"locked": "one", "waiting": "far"}
"""All in one lane; or deferred, each in a lane of its own."""

_QUIET_TUBE = "quiet"


@dataclass(frozen=True, slots=True)
class Moments:
    """Unix ms: the others flow; the cancel begins; it is done."""

    flows: float
    begins: float
    done: float


async def measure(sizes: Sizes, rows: Rows) -> None:
    for state, shape in SHAPES.items():
        async with staged() as stage:
            await stage.fill(shape, sizes.cancelled, tube=_QUIET_TUBE)
            await one(stage, state, sizes, rows)


async def one(stage: Stage, state: str, sizes: Sizes, rows: Rows) -> None:
    worker, pings = await stage.start_worker(), await stage.start("pings")
    flow = await stage.start("flow", str(RATE))
    async with timed(stage.redis, NOTED_US) as timings:
        moments = await cancelled(stage, sizes)
    await stage.end(flow)
    waits, lags = (await stage.end(pings))["waits"], (await stage.end(worker))["lags"]
    seconds = (moments.done - moments.begins) / 1000
    row: Row = {"part": "cancel", "state": state, "n": sizes.cancelled, "seconds": seconds}
    longest = longest_cancel(timings)
    before, during = ((moments.flows, moments.begins), (moments.begins, moments.done))
    rows.show({**row, "longest_script_ms": longest, **spread("ping", within(waits, *during))})
    for when, span in {"before": before, "meanwhile": during}.items():
        rows.show({"part": "cancel", "state": state, "others": when, **spread("latency", within(lags, *span))})
    verdict(f"cancel of the {state}, longest script, ms", longest, f"≤ {LONGEST_MS:g}", longest <= LONGEST_MS)
    later = percentile(within(lags, *during) or [0.0], 0.99)
    verdict(f"cancel of the {state}, others' latency p99 ms", later, f"≤ {LATER_MS:g}", later <= LATER_MS)


async def cancelled(stage: Stage, sizes: Sizes) -> Moments:
    flows = time.time() * 1000
    await asyncio.sleep(sizes.quiet_s)
    begins = time.time() * 1000
    told = await stage.queue.cancel_by(TaskFilter(user=USER))
    if told["cancelled"] != sizes.cancelled:
        raise NotDone(f"{told['cancelled']} of {sizes.cancelled} were cancelled")
    return Moments(flows, begins, time.time() * 1000)


def longest_cancel(timings: Timings) -> float:
    return max(timings.of("cancel_tasks"), default=0) / 1000
