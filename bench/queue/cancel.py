"""bench queue cancel: cancels all tasks of one user, in pages, while tasks of other users are put and done."""

import asyncio
import time
from dataclasses import dataclass

from bench.harness.measurements import LONG_SCRIPT_US, ScriptTimings, latency_columns, script_timings
from bench.harness.report import Row, Rows, percentile, report_target
from bench.queue.processes.samples import USER
from bench.queue.queue_environment import QueueEnvironment, queue_environment, values_between
from bench.queue.sizes import Sizes
from cli.command import CommandFailed
from core.queue import TaskFilter

LONGEST_MS, OTHERS_MS = 10.0, 10.0
RATE = 100
SHAPES = {"locked": "one", "waiting": "far"}
"""`locked`: all in one lane. `waiting`: deferred, each in its own lane."""

_QUIET_TUBE = "quiet"


@dataclass(frozen=True, slots=True)
class Moments:
    """Unix ms: the puts of other users begin; the cancellation begins; it is done."""

    puts_begin: float
    cancel_begins: float
    cancel_done: float


async def measure(sizes: Sizes, rows: Rows) -> None:
    for state, shape in SHAPES.items():
        async with queue_environment() as env:
            await env.fill(shape, sizes.cancelled, tube=_QUIET_TUBE)
            await measure_cancel(env, state, sizes, rows)


async def measure_cancel(env: QueueEnvironment, state: str, sizes: Sizes, rows: Rows) -> None:
    worker, pings = await env.start_worker(), await env.start("pings")
    puts = await env.start("steady_puts", str(RATE))
    async with script_timings(env.redis, LONG_SCRIPT_US) as timings:
        moments = await cancel_all(env, sizes)
    await env.stop(puts)
    waits, lags = (await env.stop(pings))["waits"], (await env.stop(worker))["lags"]
    seconds = (moments.cancel_done - moments.cancel_begins) / 1000
    row: Row = {"part": "cancel", "state": state, "n": sizes.cancelled, "seconds": seconds}
    longest = longest_cancel(timings)
    before, during = ((moments.puts_begin, moments.cancel_begins), (moments.cancel_begins, moments.cancel_done))
    rows.show({**row, "longest_script_ms": longest, **latency_columns("ping", values_between(waits, *during))})
    for when, period in {"before": before, "meanwhile": during}.items():
        rows.show(
            {
                "part": "cancel",
                "state": state,
                "others": when,
                **latency_columns("latency", values_between(lags, *period)),
            }
        )
    report_target(f"cancel of the {state}, longest script, ms", longest, f"≤ {LONGEST_MS:g}", longest <= LONGEST_MS)
    others = percentile(values_between(lags, *during) or [0.0], 0.99)
    report_target(f"cancel of the {state}, others' latency p99 ms", others, f"≤ {OTHERS_MS:g}", others <= OTHERS_MS)


async def cancel_all(env: QueueEnvironment, sizes: Sizes) -> Moments:
    puts_begin = time.time() * 1000
    await asyncio.sleep(sizes.quiet_s)
    cancel_begins = time.time() * 1000
    result = await env.queue.cancel_by(TaskFilter(user=USER))
    if result.cancelled != sizes.cancelled:
        raise CommandFailed(f"{result.cancelled} of {sizes.cancelled} were cancelled")
    return Moments(puts_begin, cancel_begins, time.time() * 1000)


def longest_cancel(timings: ScriptTimings) -> float:
    return max(timings.of("cancel_tasks"), default=0) / 1000
