"""bench scenarios steps: scripts and server commands of one step, with few and with many stored runs.

The events are put into the queue before the process starts. A run of one step is compared with one of eleven; what is
more in the longer one is the cost of ten steps. Between the two measurements many runs are stored: the cost of a step
must not depend on them.
"""

from collections.abc import Mapping

from bench.harness.environment import Environment
from bench.harness.measurements import transition_count, wait_until
from bench.harness.process_cost import CommandCounts, command_counts
from bench.harness.report import Rows, log_progress, report_target
from bench.scenarios.samples import LONG_CHAIN, put_events
from bench.scenarios.sizes import Sizes
from bench.scenarios.systems import bench_environment
from core.redis.store import Store
from core.updates.events import TUBE

MOST_SCRIPTS = 1.0
_TIMEOUT = 300.0


async def measure(sizes: Sizes, rows: Rows) -> None:
    async with bench_environment() as env:
        store = await Store.open(f"{env.url}?client_name=bench")
        await env.start_command("scenarios")
        bench = _Bench(env, store)
        few = await bench.cost_of_a_step(sizes.runs)
        log_progress(f"storing {sizes.stored:,} runs")
        await bench.run(sizes.stored, "step")
        many = await bench.cost_of_a_step(sizes.runs)
        await store.close()
    for stored, cost in ((0, few), (sizes.stored, many)):
        rows.show({"part": "steps", "stored_runs": stored, "n": sizes.runs * (LONG_CHAIN - 1), **cost})
    scripts = many["scripts_per_step"]
    report_target("scripts per step", scripts, f"≤ {MOST_SCRIPTS:g}", scripts <= MOST_SCRIPTS)


class _Bench:
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

        await wait_until(are_done, _TIMEOUT, f"the end of {count} runs")
        return (await command_counts(self._env.redis)).since(before)

    async def _done(self) -> int:
        return await transition_count(self._env.redis, TUBE, "done")
