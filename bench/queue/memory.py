"""bench queue memory: bytes of a pending task, by its fields and by server; and what is left after a drain."""

import asyncio
import shutil
from pathlib import Path

from bench.harness.measurements import ServerSize, server_size
from bench.harness.report import Rows, log_progress, report_target
from bench.queue.queue_environment import QueueEnvironment, QueueSizes, queue_environment
from core.redis.keys import PERMANENT, Lifetime, kind_of

TARGET, LEFT_TARGET = 700, 0.01
SHAPES = {
    "plain": "no lane",
    "tens": "ten to a lane",
    "own": "a lane of its own",
    "marked": "lane, user, kind, tag, four tenants",
}
_WITH_TARGET = ("tens", "own")
_WARM_UP = 200
_SHRINK_CHECKS = 60


async def measure(sizes: QueueSizes, rows: Rows) -> None:
    for server, program in servers().items():
        for shape, what in SHAPES.items():
            each = await bytes_of_each(shape, sizes.weighed, program)
            rows.show({"part": "memory", "server": server, "task": what, "n": sizes.weighed, "bytes": round(each)})
            if shape in _WITH_TARGET:
                report_target(f"bytes of a pending task, {what}, on {server}", each, f"≤ {TARGET}", each <= TARGET)
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
