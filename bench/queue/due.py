"""bench queue due: many tasks fall due at the same moment while a worker waits and another client sends PINGs."""

import asyncio
import time

from bench.harness.measurements import LONG_SCRIPT_US, latency_columns, script_timings, transition_count, wait_until
from bench.harness.report import Row, Rows, report_target
from bench.queue.processes.samples import TUBE
from bench.queue.queue_environment import queue_environment, values_between
from bench.queue.sizes import Sizes
from cli.command import CommandFailed

LONGEST_MS, PING_MS, RATIO = 10.0, 10.0, 2.0
_PUTS_PER_S, _HEAD_START = 4_000, 6.0
_TIMEOUT = 120.0


async def measure(sizes: Sizes, rows: Rows) -> None:
    runs = [await measure_due(count) for count in sizes.due]
    for run in runs:
        rows.show(run)
    few, many = runs[0], runs[-1]
    longest, ping = float(many["longest_script_ms"] or 0), float(many["ping_p99_ms"] or 0)
    ratio = longest / float(few["longest_script_ms"] or longest)
    report_target(f"{many['n']:,} due at once, longest script, ms", longest, f"≤ {LONGEST_MS:g}", longest <= LONGEST_MS)
    report_target(f"longest script to that with {few['n']:,}", ratio, f"≤ {RATIO:g}", ratio <= RATIO)
    report_target("a PING meanwhile, p99 ms", ping, f"≤ {PING_MS:g}", ping <= PING_MS)


async def measure_due(count: int) -> Row:
    """Measure tasks per second from the due time on: `ready` until all can be claimed, `done` until a worker has done
    all.
    """
    async with queue_environment() as env:
        at = round((time.time() + _HEAD_START + count / _PUTS_PER_S) * 1000)
        await env.fill("due", count, at)
        worker, pings = await env.start_worker(), await env.start("pings")
        if time.time() * 1000 > at:
            raise CommandFailed("the tasks were due before all were put; the machine is too busy")
        async with script_timings(env.redis, LONG_SCRIPT_US) as timings:
            await asyncio.sleep(at / 1000 - time.time())

            async def are_ready() -> bool:
                return await transition_count(env.redis, TUBE, "promoted") >= count

            ready = await wait_until(are_ready, _TIMEOUT, "the promotion of due tasks")
            done = await env.all_done(count, _TIMEOUT)
        waits = values_between((await env.stop(pings))["waits"], at, done)
        await env.stop(worker)
    rates = {f"{name}_per_s": round(1000 * count / (end - at)) for name, end in (("ready", ready), ("done", done))}
    scripts = {"script_p50_ms": timings.median_ms, "longest_script_ms": timings.longest_ms}
    return {"part": "due", "n": count, **rates, **scripts, **latency_columns("ping", waits)}
