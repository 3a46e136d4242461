"""bench scenarios waiting: what runs cost that wait for a delivery whose courier is not running."""

import asyncio
import time

from bench.harness.child_process import ChildProcess
from bench.harness.environment import Environment
from bench.harness.measurements import wait_until
from bench.harness.process_cost import commands_within, cpu_seconds
from bench.harness.report import Rows, log_progress, report_target
from bench.scenarios.samples import put_events
from bench.scenarios.sizes import Sizes
from bench.scenarios.systems import bench_environment
from core.redis.keys import KEYS
from core.redis.store import Store
from core.updates.events import TUBE

MOST_CPU, SETTLE = 1.0, 3.0
_TIMEOUT = 600.0


async def measure(sizes: Sizes, rows: Rows) -> None:
    async with bench_environment() as env:
        store = await Store.open(f"{env.url}?client_name=bench")
        scenarios, _ = await env.start_command("scenarios")
        for waiting in (0, sizes.waiting):
            await park(env, store, waiting)
            await asyncio.sleep(min(SETTLE, sizes.seconds))
            rows.show({"part": "waiting", "runs": waiting, **(await idle_cost(env, scenarios, sizes.seconds))})
        await store.close()


async def park(env: Environment, store: Store, count: int) -> None:
    """Begins runs that wait; returns when the process has given all of them away."""
    log_progress(f"{count:,} runs begin to wait")
    await put_events(store, 0, count, "one")

    async def are_parked() -> bool:
        states = await env.redis.hmget(KEYS["states"].at(0), f"{TUBE}:waiting", f"{TUBE}:taken")
        return [int(number or 0) for number in states] == [count, 0]

    await wait_until(are_parked, _TIMEOUT, f"waiting of {count} runs")


async def idle_cost(env: Environment, scenarios: ChildProcess, seconds: float) -> dict[str, float]:
    """Return the CPU of the process and of the server in percent of a core, and commands per second."""
    pids = {"scenarios": scenarios.pid, "server": env.server.pid}
    before, began = {name: cpu_seconds(pid) for name, pid in pids.items()}, time.monotonic()
    commands = await commands_within(env.redis, seconds)
    took = time.monotonic() - began
    shares = {name: 100 * (cpu_seconds(pid) - before[name]) / took for name, pid in pids.items()}
    share = shares["scenarios"]
    report_target("CPU of the process, % of a core", share, f"< {MOST_CPU:g}", share < MOST_CPU)
    percents = {f"{name}_cpu_percent": round(share, 2) for name, share in shares.items()}
    return {**percents, "commands_per_s": round(commands / took, 2)}
