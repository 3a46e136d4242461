"""bench scenarios steps and waiting: what a step costs, and what runs cost that wait for a delivery.

`steps`: the events are put into the queue before the process starts. A run of one step is compared with one of eleven;
what is more in the longer one is the cost of ten steps. Between the two measurements many runs are stored: the cost of
a step must not depend on them.

`waiting`: the courier of the delivery is not running.
"""

import asyncio
import time
from collections.abc import Mapping

from bench.harness.environment import ChildProcess, Environment
from bench.harness.measurements import (
    CommandCounts,
    command_counts,
    commands_within,
    cpu_seconds,
    transition_count,
    wait_until,
)
from bench.harness.report import Rows, log_progress, report_target
from bench.scenarios.bots import LONG_CHAIN, BotSizes, bench_environment, put_events
from core.redis.keys import KEYS
from core.redis.store import Store
from core.updates.events import TUBE

MOST_SCRIPTS = 1.0
_RUNS_TIMEOUT = 300.0


async def measure_steps(sizes: BotSizes, rows: Rows) -> None:
    async with bench_environment() as env:
        store = await Store.open(f"{env.url}?client_name=bench")
        await env.start_command("scenarios")
        bench = RunCounter(env, store)
        few = await bench.cost_of_a_step(sizes.runs)
        log_progress(f"storing {sizes.stored:,} runs")
        await bench.run(sizes.stored, "step")
        many = await bench.cost_of_a_step(sizes.runs)
        await store.close()
    for stored, cost in ((0, few), (sizes.stored, many)):
        rows.show({"part": "steps", "stored_runs": stored, "n": sizes.runs * (LONG_CHAIN - 1), **cost})
    scripts = many["scripts_per_step"]
    report_target("scripts per step", scripts, f"≤ {MOST_SCRIPTS:g}", scripts <= MOST_SCRIPTS)


class RunCounter:
    """Puts events and waits until they are handled. Each person writes once."""

    def __init__(self, env: Environment, store: Store) -> None:
        self._env = env
        self._store = store
        self._people = 0

    async def cost_of_a_step(self, runs: int) -> Mapping[str, float]:
        """Return what a step more costs, from chains of one and of eleven steps."""
        await self.run(runs // 10, "chain")  # its scripts are loaded
        short, long = await self.run(runs, "step"), await self.run(runs, "chain")
        steps = runs * (LONG_CHAIN - 1)
        return {
            "scripts_per_step": round((long.scripts - short.scripts) / steps, 3),
            "commands_per_step": round((long.executed - short.executed) / steps, 2),
        }

    async def run(self, count: int, text: str) -> CommandCounts:
        """Return what the server executed until the runs of `count` events were over."""
        before, done = await command_counts(self._env.redis), await self._done()
        await put_events(self._store, self._people, count, text)
        self._people += count

        async def are_done() -> bool:
            return await self._done() == done + count

        await wait_until(are_done, _RUNS_TIMEOUT, f"the end of {count} runs")
        return (await command_counts(self._env.redis)).since(before)

    async def _done(self) -> int:
        return await transition_count(self._env.redis, TUBE, "done")


MOST_CPU, SETTLE = 1.0, 3.0
_WAIT_TIMEOUT = 600.0


async def measure_waiting(sizes: BotSizes, rows: Rows) -> None:
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

    await wait_until(are_parked, _WAIT_TIMEOUT, f"waiting of {count} runs")


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
