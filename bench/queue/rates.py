"""bench queue rates: tasks put and done per second by real processes, beside a trivial script on the same server.

Each round has its turns in this order: the trivial script, puts one by one of 32 callers, puts in bulk, no-op tasks
done by one worker process and by two. Lanes, leases and fencing are on as always; with ten tasks to a lane, or none.
"""

import time
from collections.abc import Sequence

from bench.harness.cost import cpu_of
from bench.harness.ground import START
from bench.harness.rows import Rows, median, say, verdict
from bench.queue.sizes import Sizes
from bench.queue.stage import Spent, Stage, staged

CALLERS, BULK = 32, 1_000
WANTED, WANTED_TO_TRIVIAL = 15_000, 0.5
_SHAPES = {"ten to a lane": "tens", "no lanes": "plain"}


async def measure(sizes: Sizes, rows: Rows) -> None:
    trivial: list[tuple[float, float]] = []
    spent: dict[str, list[Spent]] = {}
    for number in range(sizes.rounds):
        say(f"round {number + 1} of {sizes.rounds}")
        trivial.append(await trivial_rates(sizes))
        for system, one in (await one_round(sizes)).items():
            spent.setdefault(system, []).append(one)
    raw, redis_py = (median([rates[n] for rates in trivial]) for n in range(2))
    show(rows, raw, redis_py, {system: middle(runs) for system, runs in spent.items()})


def middle(runs: Sequence[Spent]) -> Spent:
    """The run with the median rate."""
    return sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]


def show(rows: Rows, raw: float, redis_py: float, spent: dict[str, Spent]) -> None:
    for system, rate in {"trivial script, raw": raw, "trivial script, redis-py": redis_py}.items():
        rows.show({"part": "rates", "system": system, "calls_per_s": round(rate)})
    for system, one in spent.items():
        rate = one.count / one.seconds
        rows.show(
            {**one.row("rates", system), "to_raw": round(rate / raw, 3), "to_redis_py": round(rate / redis_py, 2)}
        )
    best = spent["done by 1 worker, ten to a lane"]
    rate = best.count / best.seconds
    verdict("tasks done per second by one process", rate, f"≥ {WANTED:,}", rate >= WANTED)
    verdict(
        "and to a trivial script by redis-py",
        rate / redis_py,
        f"≥ {WANTED_TO_TRIVIAL}",
        rate / redis_py >= WANTED_TO_TRIVIAL,
    )


async def trivial_rates(sizes: Sizes) -> tuple[float, float]:
    async with staged() as stage:
        child = await stage.place.start("trivial", "bench.queue.trivial", stage.place.url, str(sizes.trivial_s))
        facts = await child.facts(START)
        return facts["raw"], facts["redis_py"]


async def one_round(sizes: Sizes) -> dict[str, Spent]:
    async with staged() as stage:
        told = {
            f"put by {CALLERS} callers": await stage.put("own", sizes.put, CALLERS, 1),
            f"put in bulks of {BULK:,}": await stage.put("own", sizes.bulk, 1, BULK),
        }
    for name, shape in _SHAPES.items():
        for workers in (1, 2):
            async with staged() as stage:
                system = f"done by {workers} worker{'s' * (workers > 1)}, {name}"
                told[system] = await done(stage, shape, sizes.worked, workers)
    return told


async def done(stage: Stage, shape: str, count: int, workers: int) -> Spent:
    """From the word to go until all are done. The workers are there and connected before."""
    await stage.fill(shape, count)
    children = [await stage.start_worker(held=True) for _ in range(workers)]
    store, began = cpu_of(stage.place.store.pid), time.time()
    await stage.go(workers)
    seconds = await stage.all_done(count) / 1000 - began
    store = cpu_of(stage.place.store.pid) - store
    told = [await stage.end(child) for child in children]
    return Spent(count, seconds, sum(one["cpu"] for one in told), store)
