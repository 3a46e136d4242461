"""bench jobs idle: bytes of a job that waits for its next iteration, and the CPU of all processes meanwhile."""

import asyncio
import time
from collections.abc import Sequence

from bench.harness.measurements import server_size, transition_count, wait_until
from bench.harness.process_cost import commands_within, cpu_seconds
from bench.harness.report import Rows, log_progress, report_target
from bench.jobs.samples import TENANT, Bench, running_jobs, start_idle
from bench.jobs.sizes import Sizes
from core.jobs import JobId
from core.jobs.storage import tube_of
from core.redis.keys import KEYS

MOST_BYTES, MOST_CPU = 1000, 1.0
_WARM_UP, _SETTLE, _TIMEOUT = 20, 3.0, 1200.0
_KINDS = ("job", "job_log")


async def measure(sizes: Sizes, rows: Rows) -> None:
    async with running_jobs(sizes) as bench:
        await run_once(bench, range(_WARM_UP))
        await show_cpu(bench, 0, sizes, rows)
        before = (await server_size(bench.env.redis)).bytes
        began = time.monotonic()
        await run_once(bench, range(_WARM_UP, _WARM_UP + sizes.jobs))
        log_progress(f"first iterations of {sizes.jobs:,} jobs: {sizes.jobs / (time.monotonic() - began):,.0f}/s")
        await asyncio.sleep(min(_SETTLE, sizes.seconds))
        each = ((await server_size(bench.env.redis)).bytes - before) / sizes.jobs
        rows.show({"part": "idle", "n": sizes.jobs, "bytes": round(each), **(await parts_of(bench))})
        report_target("bytes of an idle job", each, f"≤ {MOST_BYTES}", each <= MOST_BYTES)
        await show_cpu(bench, sizes.jobs, sizes, rows)


async def run_once(bench: Bench, numbers: Sequence[int]) -> None:
    """Starts jobs, and waits until each has had its first iteration."""
    redis = bench.env.redis
    done = await transition_count(redis, tube_of("idle"), "done") + len(numbers)
    await start_idle(bench.jobs, numbers)

    async def are_idle() -> bool:
        return await transition_count(redis, tube_of("idle"), "done") == done

    await wait_until(are_idle, _TIMEOUT, f"the first iteration of {len(numbers)} jobs")


async def parts_of(bench: Bench) -> dict[str, int]:
    """Return the keys of the first job, as the server counts them; the rest of its bytes is in indexes."""
    job_id = JobId(TENANT, "idle", "0")
    job = await bench.jobs.find(job_id)
    names = {f"{kind}_bytes": KEYS[kind].at(0, f"{TENANT}/{job_id.name}") for kind in _KINDS}
    names["task_bytes"] = KEYS["task"].at(0, job.record.task.partition(".")[2])
    return {name: int(await bench.env.redis.memory_usage(key) or 0) for name, key in names.items()}


async def show_cpu(bench: Bench, jobs: int, sizes: Sizes, rows: Rows) -> None:
    """Show the CPU of the processes together and of the server, in percent of a core."""
    pids = {"processes": [one.pid for one in bench.processes], "server": [bench.env.server.pid]}
    before, began = {name: _cpu(some) for name, some in pids.items()}, time.monotonic()
    commands = await commands_within(bench.env.redis, sizes.seconds)
    took = time.monotonic() - began
    shares = {f"{name}_cpu_percent": round(100 * (_cpu(some) - before[name]) / took, 2) for name, some in pids.items()}
    rows.show({"part": "idle", "idle_jobs": jobs, **shares, "commands_per_s": round(commands / took, 2)})
    share = shares["processes_cpu_percent"]
    report_target(f"CPU of the processes with {jobs:,} idle jobs, %", share, f"< {MOST_CPU:g}", share < MOST_CPU)


def _cpu(pids: Sequence[int]) -> float:
    return sum(map(cpu_seconds, pids))
