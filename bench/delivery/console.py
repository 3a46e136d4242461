"""bench console: what open consoles cost an installation with many pending tasks.

    fill ─▶ the server settles ─▶ without consoles ─▶ with 20 consoles, half on the overview, half on the tubes
                                  tasks are put meanwhile, so that the streams have something to say

Both are measured with the same server and API process, one after the other. The cost is the difference.
"""

import asyncio
import time
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass

from msgspec.structs import replace

from bench.harness.child_process import ChildProcess
from bench.harness.environment import API_KEY, START_TIMEOUT, wait_for_aof_rewrite
from bench.harness.measurements import latency_columns
from bench.harness.process_cost import cpu_seconds
from bench.harness.report import Row, Rows, log_progress, percentile, report_target
from bench.queue.queue_environment import QueueEnvironment, queue_environment, values_between
from core.monitoring.samples import KEPT, Samples, SampleStep
from core.redis.store import Store

VALKEY_TARGET, API_TARGET, PING_TARGET = 1.0, 5.0, 10.0
CONSOLES = 20
PUTS_PER_S = 5
_SHAPE = "far"


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--tasks", type=int, help="pending meanwhile (1000000)")
    parser.add_argument("--seconds", type=float, help="how long to measure, without consoles and with them (60)")
    parser.add_argument("--short", action="store_true", help="50,000 tasks, 5 seconds")


@dataclass(frozen=True, slots=True)
class PageCost:
    """`valkey`, `api`: percent of a core. `pings`: ms. `reads`: responses that consoles have read per second."""

    valkey: float
    api: float
    pings: list[float]
    reads: float = 0.0

    def row(self, consoles: int, tasks: int) -> Row:
        return {
            "consoles": consoles,
            "pending": tasks,
            "valkey_percent": round(self.valkey, 2),
            "api_percent": round(self.api, 2),
            "reads_per_s": round(self.reads, 1),
            **latency_columns("ping", self.pings),
        }


async def measure(arguments: Namespace, rows: Rows) -> None:
    tasks = arguments.tasks or (50_000 if arguments.short else 1_000_000)
    seconds = arguments.seconds or (5.0 if arguments.short else 60.0)
    async with queue_environment() as env:
        await env.fill(_SHAPE, tasks)
        await record_an_hour(env)
        await wait_for_aof_rewrite(env.redis)
        api, facts = await env.base.start_command("serve")
        puts = await env.start("steady_puts", str(PUTS_PER_S))
        without = await cost_within(env, api, seconds)
        rows.show(without.row(0, tasks))
        beside = await cost_of_consoles(env, api, facts["http"], seconds)
        rows.show(beside.row(CONSOLES, tasks))
        await env.stop(puts)
    report(without, beside)


async def record_an_hour(env: QueueEnvironment) -> None:
    """Fills the hour of figures that the overview shows, with the counters as they are."""
    store = await Store.open(env.base.url)
    samples, now = Samples(store, env.queue), round(time.time() * 1000)
    sample = await samples.take(now)
    for number in range(KEPT[SampleStep.FINE]):
        await samples.save(SampleStep.FINE, replace(sample, at=now - number * SampleStep.FINE * 1000))
    await store.close()


async def cost_of_consoles(env: QueueEnvironment, api: ChildProcess, url: str, seconds: float) -> PageCost:
    program = "bench.delivery.open_consoles"
    consoles = await env.base.start("consoles", program, url, API_KEY, str(CONSOLES))
    await consoles.facts(START_TIMEOUT)
    began = time.monotonic()
    cost = await cost_within(env, api, seconds)
    reads = (await env.stop(consoles))["reads"] / (time.monotonic() - began)
    return PageCost(cost.valkey, cost.api, cost.pings, reads)


async def cost_within(env: QueueEnvironment, api: ChildProcess, seconds: float) -> PageCost:
    """Returns what the server and the API process use within `seconds`, while another client sends PINGs."""
    pings = await env.start("pings")
    log_progress(f"measuring for {seconds:g} s")
    began, before = time.time(), (await valkey_seconds(env), cpu_seconds(api.pid))
    await asyncio.sleep(seconds)
    ended, after = time.time(), (await valkey_seconds(env), cpu_seconds(api.pid))
    waits = values_between((await env.stop(pings))["waits"], 1000 * began, 1000 * ended)
    valkey, python = (100 * (late - early) / (ended - began) for early, late in zip(before, after, strict=True))
    return PageCost(valkey, python, waits)


async def valkey_seconds(env: QueueEnvironment) -> float:
    """Returns the CPU seconds that the server has used so far, without its children."""
    facts = await env.redis.info("cpu")
    return float(facts["used_cpu_sys"]) + float(facts["used_cpu_user"])


def report(without: PageCost, beside: PageCost) -> None:
    valkey, python = beside.valkey - without.valkey, beside.api - without.api
    ping = percentile(beside.pings, 0.99)
    each = f"{CONSOLES} consoles"
    report_target(f"{each}, % of a core of Valkey", valkey, f"≤ {VALKEY_TARGET:g}", valkey <= VALKEY_TARGET)
    report_target(f"{each}, % of a core of the API", python, f"≤ {API_TARGET:g}", python <= API_TARGET)
    report_target("PING of another client meanwhile, p99 ms", ping, f"≤ {PING_TARGET:g}", ping <= PING_TARGET)
