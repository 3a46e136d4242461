"""bench queue memory: bytes of a pending task, by what it has and by server; and what is left when all is drained."""

import asyncio
import shutil
from pathlib import Path

from bench.harness.rows import Rows, say, verdict
from bench.queue.meter import Contents, contents
from bench.queue.sizes import Sizes
from bench.queue.stage import Stage, staged
from core.redis.keys import PERMANENT, Lifetime, kind_of

WANTED, LEFT_WANTED = 700, 0.01
SHAPES = {
    "plain": "no lane",
    "tens": "ten to a lane",
    "own": "a lane of its own",
    "marked": "lane, user, kind, tag, four tenants",
}
_JUDGED = ("tens", "own")
_WARM = 200
_SHRINKING = 60


async def measure(sizes: Sizes, rows: Rows) -> None:
    for server, program in servers().items():
        for shape, what in SHAPES.items():
            each = await bytes_of_each(shape, sizes.weighed, program)
            rows.show({"part": "memory", "server": server, "task": what, "n": sizes.weighed, "bytes": round(each)})
            if shape in _JUDGED:
                verdict(f"bytes of a pending task, {what}, on {server}", each, f"≤ {WANTED}", each <= WANTED)
    async with staged() as stage:
        await drain(stage, sizes.drained, rows)


def servers() -> dict[str, Path | None]:
    found: dict[str, Path | None] = {"valkey": None}
    if program := shutil.which("redis-server"):
        found["redis"] = Path(program)
    else:
        say("no redis-server on this machine: measured on Valkey alone")
    return found


async def bytes_of_each(shape: str, count: int, program: Path | None) -> float:
    """What is there before the first (scripts, connections) is subtracted. The body: 200 bytes."""
    async with staged(program) as stage:
        await stage.fill("plain", _WARM)
        before = await contents(stage.redis)
        await stage.fill(shape, count)
        return ((await contents(stage.redis)).bytes - before.bytes) / count


async def drain(stage: Stage, count: int, rows: Rows) -> None:
    """Tasks of every kind, put and done, twice: what the first few leave behind is no growth."""
    await put_and_drain(stage, _WARM, 0)
    before = await contents(stage.redis)
    full, after = await put_and_drain(stage, count, _WARM)
    for moment, found in {"before": before, "full": full, "drained": after}.items():
        rows.show({"part": "memory", "moment": moment, "n": count, "keys": found.keys, "bytes": found.bytes})
    left = await remains(stage, rows)
    verdict("keys left by a drain that are neither counters nor run out", left, "0", left == 0)
    share = (after.bytes - before.bytes) / (full.bytes - before.bytes)
    verdict("bytes left by a drain, share of what was there", share, f"≤ {LEFT_WANTED:g}", share <= LEFT_WANTED)


async def put_and_drain(stage: Stage, count: int, done_before: int) -> tuple[Contents, Contents]:
    await stage.fill("mixed", count)
    full = await contents(stage.redis)
    worker = await stage.start_worker()
    await stage.all_done(done_before + count)
    await stage.end(worker)
    return full, await settled(stage)


async def settled(stage: Stage) -> Contents:
    """The server gives the room of its tables back in its own time."""
    found = await contents(stage.redis)
    for _ in range(_SHRINKING):
        await asyncio.sleep(0.1)
        later = await contents(stage.redis)
        if later.bytes >= found.bytes:
            break
        found = later
    return found


async def remains(stage: Stage, rows: Rows) -> int:
    """Shows what is left by name; answers how many keys have no right to be there."""
    wrong = 0
    for name in sorted([key async for key in stage.redis.scan_iter(count=1000)]):
        kind, ttl = kind_of(name), await stage.redis.ttl(name)
        may_stay = kind is not None and (kind in PERMANENT or (kind.lifetime is Lifetime.TTL and ttl >= 0))
        wrong += not may_stay
        bytes_ = await stage.redis.memory_usage(name)
        rows.show({"part": "memory", "left": name, "bytes": bytes_, "ttl_s": ttl if ttl >= 0 else None})
    return wrong
