"""bench queue claim: what a claim costs the server beside many locked lanes, deferred tasks, and in a long lane."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from bench.harness.ground import settle
from bench.harness.rows import Row, Rows, median, say, verdict
from bench.queue.meter import spread, timed
from bench.queue.samples import BODY, TUBE
from bench.queue.sizes import Sizes
from bench.queue.stage import Stage, staged
from core.queue.task import Claim, NewTask

WANTED = 1.3
_LEASE, _FLOOR = timedelta(hours=1), timedelta(seconds=3)
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Beside:
    """What else is there. `locks`: each lane's head is taken first; `is_taken`: the timed claims take these tasks."""

    name: str
    shape: str
    count: int
    locks: bool = False
    is_taken: bool = False


async def measure(sizes: Sizes, rows: Rows) -> None:
    first, *others = situations(sizes)
    base = await one(first, sizes.samples, rows, None)
    ratios = {beside.name: await one(beside, sizes.samples, rows, base) / base for beside in others}
    for name, ratio in ratios.items():
        verdict(f"a claim with {name}, to one with nothing else", ratio, f"≤ {WANTED:g}", ratio <= WANTED)


def situations(sizes: Sizes) -> Sequence[Beside]:
    locked = [Beside(f"{lanes:,} locked lanes", "pairs", 2 * lanes, locks=True) for lanes in sizes.locked]
    return (
        Beside("nothing else", "plain", 0),
        *locked,
        Beside(f"{sizes.deferred:,} deferred tasks", "far", sizes.deferred),
        Beside(f"{sizes.lane:,} tasks of one lane", "one", sizes.lane, is_taken=True),
        Beside("nothing else, again", "plain", 0),
    )


async def one(beside: Beside, samples: int, rows: Rows, base: float | None) -> float:
    """Claims one task and settles it, again and again. Answers the median of the claims' µs in the server."""
    async with staged() as stage:
        await prepare(stage, beside, samples)
        async with timed(stage.redis) as timings:
            waits = [await once(stage) for _ in range(samples)]
    claims = median(timings.of("claim"))
    row: Row = {
        "part": "claim",
        "beside": beside.name,
        "n": samples,
        "claim_us": claims,
        "to_nothing": claims / (base or claims),
    }
    rows.show({**row, "settle_us": median(timings.of("settle")), **spread("client", waits)})
    return claims


async def prepare(stage: Stage, beside: Beside, samples: int) -> None:
    if beside.count:
        await stage.fill(beside.shape, beside.count)
    if beside.locks:
        await lock(stage, beside.count // 2)
    if not beside.is_taken:
        await stage.queue.put_many(TUBE, [NewTask(BODY, lane=f"sample {n}") for n in range(samples + 1)])
    await settle(stage.redis)
    await once(stage)


async def lock(stage: Stage, lanes: int) -> None:
    """Takes the head of each lane."""
    began, taken = time.monotonic(), 0
    while taken < lanes:
        taken += len((await claim(stage, min(_PAGE, lanes - taken))).tasks)
    say(f"{lanes:,} lanes locked in {time.monotonic() - began:.1f} s")


async def claim(stage: Stage, limit: int) -> Claim:
    return await stage.queue.claim(TUBE, "bench", shard=0, limit=limit, lease=_LEASE, floor=_FLOOR)


async def once(stage: Stage) -> float:
    """The claim's ms, as its caller waits."""
    began = time.perf_counter()
    (task,) = (await claim(stage, 1)).tasks
    waited = time.perf_counter() - began
    await stage.queue.settle(task)
    return waited * 1000
