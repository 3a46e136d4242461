"""bench queue rates, latency and audit: how fast the queue is.

`rates`: tasks put and done per second by real processes, next to a trivial script on the same server. Each round
measures in this order: the trivial script, single puts by 32 callers, puts in bulk, no-op tasks done by one worker
process and by two. Leases and fencing are always on; there are ten tasks to a lane, or no lanes. `latency`: from put to
the start of the handler in another process, for tasks that arrive one by one. `audit`: how long the audit of many
pending tasks takes, ten to a lane, while nothing else runs.
"""

import asyncio
import time
from collections.abc import Sequence

from bench.harness.environment import START_TIMEOUT
from bench.harness.measurements import cpu_seconds, latency_columns
from bench.harness.report import Rows, log_progress, median, percentile, report_target
from bench.queue.queue_environment import PROGRAMS, QueueEnvironment, QueueSizes, WorkCost, queue_environment
from cli.command import CommandFailed
from core.audit import Audit
from core.redis.store import Store

CALLERS, BULK = 32, 1_000
TARGET, TRIVIAL_TARGET = 15_000, 0.5
_SHAPES = {"ten to a lane": "tens", "no lanes": "plain"}


async def measure_rates(sizes: QueueSizes, rows: Rows) -> None:
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


async def trivial_rates(sizes: QueueSizes) -> tuple[float, float]:
    async with queue_environment() as env:
        child = await env.base.start("trivial", PROGRAMS, "trivial", env.base.url, str(sizes.trivial_s))
        facts = await child.facts(START_TIMEOUT)
        return facts["raw"], facts["redis_py"]


async def run_round(sizes: QueueSizes) -> dict[str, WorkCost]:
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


RATE = 100
LATENCY_TARGET_MS = 2.0
_WARM_UP_MS = 500.0


async def measure_latency(sizes: QueueSizes, rows: Rows) -> None:
    async with queue_environment() as env:
        lags = await measure_lags(env, sizes.latency_s)
    rows.show({"part": "latency", "n": len(lags), "rate_per_s": RATE, **latency_columns("latency", lags)})
    p99 = percentile(lags, 0.99)
    report_target(
        "latency of a task that is due at once, p99 ms", p99, f"≤ {LATENCY_TARGET_MS:g}", p99 <= LATENCY_TARGET_MS
    )


async def measure_lags(env: QueueEnvironment, seconds: float) -> list[float]:
    """Returns the lags in ms, without those of the first half second, in which scripts are loaded."""
    worker, puts = await env.start_worker(), await env.start("steady_puts", str(RATE))
    began = time.time() * 1000
    await asyncio.sleep(seconds + _WARM_UP_MS / 1000)
    await env.all_done((await env.stop(puts))["put"])
    lags = (await env.stop(worker))["lags"]
    return [lag for moment, lag in lags if moment >= began + _WARM_UP_MS]


AUDIT_TARGET_S = 15.0


async def measure_audit(sizes: QueueSizes, rows: Rows) -> None:
    async with queue_environment() as env:
        await env.fill("tens", sizes.audited)
        store = await Store.open(env.base.url)
        try:
            seconds = await audit_seconds(store, sizes.audited)
        finally:
            await store.close()
    rows.show({"part": "audit", "n": sizes.audited, "seconds": round(seconds, 2)})
    report_target(f"audit of {sizes.audited:,} tasks, s", seconds, f"≤ {AUDIT_TARGET_S:g}", seconds <= AUDIT_TARGET_S)


async def audit_seconds(store: Store, count: int) -> float:
    """Return the seconds of an audit. Raises CommandFailed if a task is not read, or if an invariant is violated."""
    audit, began = Audit(store), time.perf_counter()
    violations = [violation async for violation in audit.find()]
    seconds = time.perf_counter() - began
    if violations or audit.summary.tasks != count:
        raise CommandFailed(f"{audit.summary.tasks:,} of {count:,} tasks were read; violations: {violations[:3]}")
    return seconds
