"""bench queue claim: what a claim costs the server with many locked lanes, with deferred tasks, and in a long lane."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from bench.harness.environment import wait_for_aof_rewrite
from bench.harness.measurements import latency_columns, script_timings
from bench.harness.report import Row, Rows, log_progress, median, report_target
from bench.queue.processes.samples import BODY, TUBE
from bench.queue.queue_environment import QueueEnvironment, queue_environment
from bench.queue.sizes import Sizes
from core.queue import Claim, NewTask
from core.queue.task import ClaimRequest

TARGET = 1.3
_LEASE, _MAX_SLEEP = timedelta(hours=1), timedelta(seconds=3)
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Situation:
    """The content of the server. `locks`: the first task of each lane is claimed beforehand. `is_claimed`: these are
    the tasks that the timed claims take.
    """

    name: str
    shape: str
    count: int
    locks: bool = False
    is_claimed: bool = False


async def measure(sizes: Sizes, rows: Rows) -> None:
    first, *others = situations(sizes)
    base = await measure_situation(first, sizes.samples, rows, None)
    ratios = {one.name: await measure_situation(one, sizes.samples, rows, base) / base for one in others}
    for name, ratio in ratios.items():
        report_target(f"a claim with {name}, to one with nothing else", ratio, f"≤ {TARGET:g}", ratio <= TARGET)


def situations(sizes: Sizes) -> Sequence[Situation]:
    locked = [Situation(f"{lanes:,} locked lanes", "pairs", 2 * lanes, locks=True) for lanes in sizes.locked]
    return (
        Situation("nothing else", "plain", 0),
        *locked,
        Situation(f"{sizes.deferred:,} deferred tasks", "far", sizes.deferred),
        Situation(f"{sizes.lane:,} tasks of one lane", "one", sizes.lane, is_claimed=True),
        Situation("nothing else, again", "plain", 0),
    )


async def measure_situation(situation: Situation, samples: int, rows: Rows, base: float | None) -> float:
    """Claims and settles one task at a time. Returns the median time of a claim in the server, in µs."""
    async with queue_environment() as env:
        await prepare(env, situation, samples)
        async with script_timings(env.redis) as timings:
            waits = [await claim_and_settle(env) for _ in range(samples)]
    claims = median(timings.of("claim"))
    row: Row = {
        "part": "claim",
        "beside": situation.name,
        "n": samples,
        "claim_us": claims,
        "to_nothing": claims / (base or claims),
    }
    rows.show({**row, "settle_us": median(timings.of("settle")), **latency_columns("client", waits)})
    return claims


async def prepare(env: QueueEnvironment, situation: Situation, samples: int) -> None:
    if situation.count:
        await env.fill(situation.shape, situation.count)
    if situation.locks:
        await lock_lanes(env, situation.count // 2)
    if not situation.is_claimed:
        await env.queue.put_many(TUBE, [NewTask(BODY, lane=f"sample {n}") for n in range(samples + 1)])
    await wait_for_aof_rewrite(env.redis)
    await claim_and_settle(env)


async def lock_lanes(env: QueueEnvironment, lanes: int) -> None:
    """Claims the first task of each lane."""
    began, taken = time.monotonic(), 0
    while taken < lanes:
        taken += len((await claim(env, min(_PAGE, lanes - taken))).tasks)
    log_progress(f"{lanes:,} lanes locked in {time.monotonic() - began:.1f} s")


async def claim(env: QueueEnvironment, limit: int) -> Claim:
    return await env.queue.claim(0, ClaimRequest(TUBE, "bench", limit, _LEASE, _MAX_SLEEP))


async def claim_and_settle(env: QueueEnvironment) -> float:
    """Returns how long (ms) the caller waited for the claim."""
    began = time.perf_counter()
    (task,) = (await claim(env, 1)).tasks
    waited = time.perf_counter() - began
    await env.queue.settle(task)
    return waited * 1000
