"""bench queue rates: tasks put and done per second by real processes, next to a trivial script on the same server.

Each round measures in this order: the trivial script, single puts by 32 callers, puts in bulk, no-op tasks done by one
worker process and by two. Leases and fencing are always on; there are ten tasks to a lane, or no lanes.
"""

import time
from collections.abc import Sequence

from bench.harness.environment import START_TIMEOUT
from bench.harness.process_cost import cpu_seconds
from bench.harness.report import Rows, log_progress, median, report_target
from bench.queue.queue_environment import QueueEnvironment, WorkCost, queue_environment
from bench.queue.sizes import Sizes

CALLERS, BULK = 32, 1_000
TARGET, TRIVIAL_TARGET = 15_000, 0.5
_SHAPES = {"ten to a lane": "tens", "no lanes": "plain"}


async def measure(sizes: Sizes, rows: Rows) -> None:
    trivial: list[tuple[float, float]] = []
    costs: dict[str, list[WorkCost]] = {}
    for number in range(sizes.rounds):
        log_progress(f"round {number + 1} of {sizes.rounds}")
        trivial.append(await trivial_rates(sizes))
        for system, cost in (await run_round(sizes)).items():
            costs.setdefault(system, []).append(cost)
    raw, redis_py = (median([rates[n] for rates in trivial]) for n in range(2))
    show(rows, raw, redis_py, {system: median_run(runs) for system, runs in costs.items()})


def median_run(runs: Sequence[WorkCost]) -> WorkCost:
    """Return the run with the median rate."""
    return sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]


def show(rows: Rows, raw: float, redis_py: float, costs: dict[str, WorkCost]) -> None:
    for system, rate in {"trivial script, raw": raw, "trivial script, redis-py": redis_py}.items():
        rows.show({"part": "rates", "system": system, "calls_per_s": round(rate)})
    for system, cost in costs.items():
        rate = cost.count / cost.seconds
        rows.show(
            {**cost.row("rates", system), "to_raw": round(rate / raw, 3), "to_redis_py": round(rate / redis_py, 2)}
        )
    best = costs["done by 1 worker, ten to a lane"]
    rate = best.count / best.seconds
    report_target("tasks done per second by one process", rate, f"≥ {TARGET:,}", rate >= TARGET)
    report_target(
        "the same, to a trivial script by redis-py",
        rate / redis_py,
        f"≥ {TRIVIAL_TARGET}",
        rate / redis_py >= TRIVIAL_TARGET,
    )


async def trivial_rates(sizes: Sizes) -> tuple[float, float]:
    async with queue_environment() as env:
        child = await env.base.start("trivial", "bench.queue.processes.trivial", env.base.url, str(sizes.trivial_s))
        facts = await child.facts(START_TIMEOUT)
        return facts["raw"], facts["redis_py"]


async def run_round(sizes: Sizes) -> dict[str, WorkCost]:
    async with queue_environment() as env:
        costs = {
            f"put by {CALLERS} callers": await env.put("own", sizes.put, CALLERS, 1),
            f"put in bulks of {BULK:,}": await env.put("own", sizes.bulk, 1, BULK),
        }
    for name, shape in _SHAPES.items():
        for workers in (1, 2):
            async with queue_environment() as env:
                system = f"done by {workers} worker{'s' * (workers > 1)}, {name}"
                costs[system] = await measure_done(env, shape, sizes.worked, workers)
    return costs


async def measure_done(env: QueueEnvironment, shape: str, count: int, workers: int) -> WorkCost:
    """Measures from the start signal until all are done. The workers are connected before it."""
    await env.fill(shape, count)
    children = [await env.start_worker(wait_for_go=True) for _ in range(workers)]
    server_cpu, began = cpu_seconds(env.base.server.pid), time.time()
    await env.go(workers)
    seconds = await env.all_done(count) / 1000 - began
    server_cpu = cpu_seconds(env.base.server.pid) - server_cpu
    measured = [await env.stop(child) for child in children]
    return WorkCost(count, seconds, sum(one["cpu"] for one in measured), server_cpu)
