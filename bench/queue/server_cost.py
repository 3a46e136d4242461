"""bench queue claim, due, cancel and memory: what many tasks cost the server.

`claim`: what a claim costs with many locked lanes, with deferred tasks, and in a long lane. `due`: many tasks fall due
at the same moment while a worker waits and another client sends PINGs. `cancel`: all tasks of one user are cancelled,
in pages, while tasks of other users are put and done. `memory`: bytes of a pending task, by its fields and by
server; and what is left after a drain.
"""

import asyncio
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bench.harness.environment import wait_for_aof_rewrite
from bench.harness.measurements import (
    LONG_SCRIPT_US,
    ScriptTimings,
    ServerSize,
    latency_columns,
    script_timings,
    server_size,
    transition_count,
    wait_until,
)
from bench.harness.report import Row, Rows, log_progress, median, percentile, report_target
from bench.queue.programs import BODY, TUBE, USER
from bench.queue.queue_environment import QueueEnvironment, QueueSizes, queue_environment, values_between
from cli.command import CommandFailed
from core.queue import Claim, NewTask, TaskFilter
from core.queue.task import ClaimRequest
from core.redis.keys import PERMANENT, Lifetime, kind_of

CLAIM_TARGET = 1.3
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


async def measure_claim(sizes: QueueSizes, rows: Rows) -> None:
    first, *others = situations(sizes)
    base = await measure_situation(first, sizes.samples, rows, None)
    ratios = {one.name: await measure_situation(one, sizes.samples, rows, base) / base for one in others}
    for name, ratio in ratios.items():
        report_target(
            f"a claim with {name}, to one with nothing else", ratio, f"≤ {CLAIM_TARGET:g}", ratio <= CLAIM_TARGET
        )


def situations(sizes: QueueSizes) -> Sequence[Situation]:
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


LONGEST_MS, PING_MS, RATIO = 10.0, 10.0, 2.0
_PUTS_PER_S, _HEAD_START = 4_000, 6.0
_DUE_TIMEOUT = 120.0


async def measure_due(sizes: QueueSizes, rows: Rows) -> None:
    runs = [await measure_due_at_once(count) for count in sizes.due]
    for run in runs:
        rows.show(run)
    few, many = runs[0], runs[-1]
    longest, ping = float(many["longest_script_ms"] or 0), float(many["ping_p99_ms"] or 0)
    ratio = longest / float(few["longest_script_ms"] or longest)
    report_target(f"{many['n']:,} due at once, longest script, ms", longest, f"≤ {LONGEST_MS:g}", longest <= LONGEST_MS)
    report_target(f"longest script to that with {few['n']:,}", ratio, f"≤ {RATIO:g}", ratio <= RATIO)
    report_target("a PING meanwhile, p99 ms", ping, f"≤ {PING_MS:g}", ping <= PING_MS)


async def measure_due_at_once(count: int) -> Row:
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

            ready = await wait_until(are_ready, _DUE_TIMEOUT, "the promotion of due tasks")
            done = await env.all_done(count, _DUE_TIMEOUT)
        waits = values_between((await env.stop(pings))["waits"], at, done)
        await env.stop(worker)
    rates = {f"{name}_per_s": round(1000 * count / (end - at)) for name, end in (("ready", ready), ("done", done))}
    scripts = {"script_p50_ms": timings.median_ms, "longest_script_ms": timings.longest_ms}
    return {"part": "due", "n": count, **rates, **scripts, **latency_columns("ping", waits)}


OTHERS_MS = 10.0
OTHERS_PER_S = 100
SHAPES = {"locked": "one", "waiting": "far"}
"""`locked`: all in one lane. `waiting`: deferred, each in its own lane."""

_QUIET_TUBE = "quiet"


@dataclass(frozen=True, slots=True)
class Moments:
    """Unix ms: the puts of other users begin; the cancellation begins; it is done."""

    puts_begin: float
    cancel_begins: float
    cancel_done: float


async def measure_cancel(sizes: QueueSizes, rows: Rows) -> None:
    for state, shape in SHAPES.items():
        async with queue_environment() as env:
            await env.fill(shape, sizes.cancelled, tube=_QUIET_TUBE)
            await measure_cancel_of(env, state, sizes, rows)


async def measure_cancel_of(env: QueueEnvironment, state: str, sizes: QueueSizes, rows: Rows) -> None:
    worker, pings = await env.start_worker(), await env.start("pings")
    puts = await env.start("steady_puts", str(OTHERS_PER_S))
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


async def cancel_all(env: QueueEnvironment, sizes: QueueSizes) -> Moments:
    puts_begin = time.time() * 1000
    await asyncio.sleep(sizes.quiet_s)
    cancel_begins = time.time() * 1000
    result = await env.queue.cancel_by(TaskFilter(user=USER))
    if result.cancelled != sizes.cancelled:
        raise CommandFailed(f"{result.cancelled} of {sizes.cancelled} were cancelled")
    return Moments(puts_begin, cancel_begins, time.time() * 1000)


def longest_cancel(timings: ScriptTimings) -> float:
    return max(timings.of("cancel_tasks"), default=0) / 1000


BYTES_TARGET, LEFT_TARGET = 700, 0.01
TASK_SHAPES = {
    "plain": "no lane",
    "tens": "ten to a lane",
    "own": "a lane of its own",
    "marked": "lane, user, kind, tag, four tenants",
}
_WITH_TARGET = ("tens", "own")
_WARM_UP = 200
_SHRINK_CHECKS = 60


async def measure_memory(sizes: QueueSizes, rows: Rows) -> None:
    for server, program in servers().items():
        for shape, what in TASK_SHAPES.items():
            each = await bytes_of_each(shape, sizes.weighed, program)
            rows.show({"part": "memory", "server": server, "task": what, "n": sizes.weighed, "bytes": round(each)})
            if shape in _WITH_TARGET:
                report_target(
                    f"bytes of a pending task, {what}, on {server}", each, f"≤ {BYTES_TARGET}", each <= BYTES_TARGET
                )
    async with queue_environment() as env:
        await drain(env, sizes.drained, rows)


def servers() -> dict[str, Path | None]:
    found: dict[str, Path | None] = {"valkey": None}
    if program := shutil.which("redis-server"):
        found["redis"] = Path(program)
    else:
        log_progress("no redis-server on this machine: measured on Valkey alone")
    return found


async def bytes_of_each(shape: str, count: int, program: Path | None) -> float:
    """Subtracts what is there before the first task (scripts, connections). A body has 200 bytes."""
    async with queue_environment(program) as env:
        await env.fill("plain", _WARM_UP)
        before = await server_size(env.redis)
        await env.fill(shape, count)
        return ((await server_size(env.redis)).bytes - before.bytes) / count


async def drain(env: QueueEnvironment, count: int, rows: Rows) -> None:
    """Puts and does tasks of every shape, twice: what the first few leave behind is not growth."""
    await put_and_drain(env, _WARM_UP, 0)
    before = await server_size(env.redis)
    full, after = await put_and_drain(env, count, _WARM_UP)
    for moment, found in {"before": before, "full": full, "drained": after}.items():
        rows.show({"part": "memory", "moment": moment, "n": count, "keys": found.keys, "bytes": found.bytes})
    left = await show_remains(env, rows)
    report_target("keys left by a drain that are neither permanent nor expire", left, "0", left == 0)
    share = (after.bytes - before.bytes) / (full.bytes - before.bytes)
    report_target("bytes left by a drain, share of what was there", share, f"≤ {LEFT_TARGET:g}", share <= LEFT_TARGET)


async def put_and_drain(env: QueueEnvironment, count: int, done_before: int) -> tuple[ServerSize, ServerSize]:
    await env.fill("mixed", count)
    full = await server_size(env.redis)
    worker = await env.start_worker()
    await env.all_done(done_before + count)
    await env.stop(worker)
    return full, await size_at_rest(env)


async def size_at_rest(env: QueueEnvironment) -> ServerSize:
    """Waits until the server has shrunk its tables, then returns its size."""
    found = await server_size(env.redis)
    for _ in range(_SHRINK_CHECKS):
        await asyncio.sleep(0.1)
        later = await server_size(env.redis)
        if later.bytes >= found.bytes:
            break
        found = later
    return found


async def show_remains(env: QueueEnvironment, rows: Rows) -> int:
    """Shows each key that is left; returns how many of them should not be there."""
    wrong = 0
    for name in sorted([key async for key in env.redis.scan_iter(count=1000)]):
        kind, ttl = kind_of(name), await env.redis.ttl(name)
        may_stay = kind is not None and (kind in PERMANENT or (kind.lifetime is Lifetime.TTL and ttl >= 0))
        wrong += not may_stay
        bytes_ = await env.redis.memory_usage(name)
        rows.show({"part": "memory", "left": name, "bytes": bytes_, "ttl_s": ttl if ttl >= 0 else None})
    return wrong
