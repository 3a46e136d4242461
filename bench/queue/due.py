"""bench queue due: everybody at 17:00. Many tasks fall due in one moment while a worker waits and others ask."""

import asyncio
import time

from bench.harness.rows import Row, Rows, verdict
from bench.queue.meter import NOTED_US, counted, spread, timed, until
from bench.queue.samples import TUBE
from bench.queue.sizes import Sizes
from bench.queue.stage import staged, within
from cli.command import NotDone

LONGEST_MS, PING_MS, RATIO = 10.0, 10.0, 2.0
_PUTS_PER_S, _HEAD_START = 4_000, 6.0
_PATIENCE = 120.0


async def measure(sizes: Sizes, rows: Rows) -> None:
    runs = [await one(count) for count in sizes.due]
    for run in runs:
        rows.show(run)
    few, many = runs[0], runs[-1]
    longest, ping = float(many["longest_script_ms"] or 0), float(many["ping_p99_ms"] or 0)
    ratio = longest / float(few["longest_script_ms"] or longest)
    verdict(f"{many['n']:,} due at once, longest script, ms", longest, f"≤ {LONGEST_MS:g}", longest <= LONGEST_MS)
    verdict(f"longest script to that with {few['n']:,}", ratio, f"≤ {RATIO:g}", ratio <= RATIO)
    verdict("others wait meanwhile for a PING, p99 ms", ping, f"≤ {PING_MS:g}", ping <= PING_MS)


async def one(count: int) -> Row:
    """`ready`: from the moment due until all were takeable; `done`: until a worker had done them all."""
    async with staged() as stage:
        at = round((time.time() + _HEAD_START + count / _PUTS_PER_S) * 1000)
        await stage.fill("due", count, at)
        worker, pings = await stage.start_worker(), await stage.start("pings")
        if time.time() * 1000 > at:
            raise NotDone("putting them took longer than until they were due; the machine is too busy")
        async with timed(stage.redis, NOTED_US) as timings:
            await asyncio.sleep(at / 1000 - time.time())

            async def are_ready() -> bool:
                return await counted(stage.redis, TUBE, "promoted") >= count

            ready = await until(are_ready, _PATIENCE, "the falling due")
            done = await stage.all_done(count, _PATIENCE)
        waits = within((await stage.end(pings))["waits"], at, done)
        await stage.end(worker)
    rates = {f"{name}_per_s": round(1000 * count / (end - at)) for name, end in (("ready", ready), ("done", done))}
    held = {"script_p50_ms": timings.median_ms, "longest_script_ms": timings.longest_ms}
    return {"part": "due", "n": count, **rates, **held, **spread("ping", waits)}
