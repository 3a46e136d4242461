"""bench queue audit: how long the audit of many pending tasks takes, ten to a lane, while nothing else runs."""

import time

from bench.harness.report import Rows, report_target
from bench.queue.queue_environment import queue_environment
from bench.queue.sizes import Sizes
from cli.command import CommandFailed
from core.audit import Audit
from core.redis.store import Store

TARGET_S = 15.0


async def measure(sizes: Sizes, rows: Rows) -> None:
    async with queue_environment() as env:
        await env.fill("tens", sizes.audited)
        store = await Store.open(env.base.url)
        try:
            seconds = await audit_seconds(store, sizes.audited)
        finally:
            await store.close()
    rows.show({"part": "audit", "n": sizes.audited, "seconds": round(seconds, 2)})
    report_target(f"audit of {sizes.audited:,} tasks, s", seconds, f"≤ {TARGET_S:g}", seconds <= TARGET_S)


async def audit_seconds(store: Store, count: int) -> float:
    """Return the seconds of an audit. Raises CommandFailed if a task is not read, or if an invariant is violated."""
    audit, began = Audit(store), time.perf_counter()
    violations = [violation async for violation in audit.find()]
    seconds = time.perf_counter() - began
    if violations or audit.summary.tasks != count:
        raise CommandFailed(f"{audit.summary.tasks:,} of {count:,} tasks were read; violations: {violations[:3]}")
    return seconds
