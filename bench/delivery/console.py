"""bench console: what open consoles cost an installation with many pending tasks.

    fill ─▶ the server settles ─▶ without consoles ─▶ with 20 consoles, half on the overview, half on the tubes
                                  tasks are put meanwhile, so that the streams have something to say

Both are measured with the same server and API process, one after the other. The cost is the difference.
"""

import asyncio
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import ClientSession, ClientTimeout, CookieJar
from msgspec.structs import replace

from bench.harness.environment import API_KEY, START_TIMEOUT, ChildProcess, wait_for_aof_rewrite
from bench.harness.measurements import cpu_seconds, latency_columns, server_cpu_seconds
from bench.harness.report import Row, Rows, log_progress, percentile, report_target
from bench.queue.queue_environment import QueueEnvironment, queue_environment, values_between
from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce
from core.monitoring.figures import KEPT, Samples, SampleStep
from core.redis.store import Store

VALKEY_TARGET, API_TARGET, PING_TARGET = 1.0, 5.0, 10.0
CONSOLES = 20
PUTS_PER_S = 5
_SHAPE = "far"


def declare_console(parser: ArgumentParser) -> None:
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


async def measure_console(arguments: Namespace, rows: Rows) -> None:
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
    consoles = await env.base.start("consoles", __name__, url, API_KEY, str(CONSOLES))
    await consoles.facts(START_TIMEOUT)
    began = time.monotonic()
    cost = await cost_within(env, api, seconds)
    reads = (await env.stop(consoles))["reads"] / (time.monotonic() - began)
    return PageCost(cost.valkey, cost.api, cost.pings, reads)


async def cost_within(env: QueueEnvironment, api: ChildProcess, seconds: float) -> PageCost:
    """Returns what the server and the API process use within `seconds`, while another client sends PINGs."""
    pings = await env.start("pings")
    log_progress(f"measuring for {seconds:g} s")
    began, before = time.time(), (await server_cpu_seconds(env.redis), cpu_seconds(api.pid))
    await asyncio.sleep(seconds)
    ended, after = time.time(), (await server_cpu_seconds(env.redis), cpu_seconds(api.pid))
    waits = values_between((await env.stop(pings))["waits"], 1000 * began, 1000 * ended)
    valkey, python = (100 * (late - early) / (ended - began) for early, late in zip(before, after, strict=True))
    return PageCost(valkey, python, waits)


def report(without: PageCost, beside: PageCost) -> None:
    valkey, python = beside.valkey - without.valkey, beside.api - without.api
    ping = percentile(beside.pings, 0.99)
    each = f"{CONSOLES} consoles"
    report_target(f"{each}, % of a core of Valkey", valkey, f"≤ {VALKEY_TARGET:g}", valkey <= VALKEY_TARGET)
    report_target(f"{each}, % of a core of the API", python, f"≤ {API_TARGET:g}", python <= API_TARGET)
    report_target("PING of another client meanwhile, p99 ms", ping, f"≤ {PING_TARGET:g}", ping <= PING_TARGET)


QUIET = 15.0
Reads = Sequence[tuple[str, float]]
"""Address, and the least number of seconds between two readings, as in pages/overview.js and pages/tubes.js."""

OVERVIEW: Reads = (("/v1/overview", 5.0), ("/v1/figures?step=30", 10.0))
TUBES: Reads = (("/v1/queue/tubes", 2.0),)
_NO_TIMEOUT = ClientTimeout(total=None)


class OpenConsole:
    """One tab. `count`: how many times it has read."""

    def __init__(self, session: ClientSession, reads: Reads) -> None:
        self._session = session
        self._reads = reads
        self._changed = [asyncio.Event() for _ in reads]
        self.shown = asyncio.Event()
        self.count = 0

    async def show(self) -> None:
        """Opens the stream and shows the page until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            for (path, pause), changed in zip(self._reads, self._changed, strict=True):
                tasks.create_task(self._keep(path, pause, changed))

    async def _follow(self) -> None:
        async with self._session.get("/v1/live?topics=queue", timeout=_NO_TIMEOUT) as response:
            response.raise_for_status()
            async for line in response.content:
                if line.startswith(b"event:"):
                    for changed in self._changed:
                        changed.set()

    async def _keep(self, path: str, pause: float, changed: asyncio.Event) -> None:
        """Reads an address now, and again whenever the queue has changed."""
        while True:
            async with self._session.get(path) as response:
                response.raise_for_status()
                await response.read()
            self.count += 1
            self.shown.set()
            await asyncio.sleep(pause)
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), QUIET)
            changed.clear()


async def open_consoles(url: str, key: str, count: int) -> None:
    """Behave as so many open consoles do; announce how many times they have read when asked to stop.

    Half of them show the overview, half the tubes (delivery/console/static/pages). Each has its own connections and
    stream, reads its page again when the stream says that the queue has changed, and every QUIET seconds anyway.
    """
    stop, jar = stop_requested(), CookieJar(unsafe=True)
    async with ClientSession(url, cookie_jar=jar) as session:
        async with session.post("/v1/sessions", json={"key": key}) as response:
            response.raise_for_status()
        consoles = [OpenConsole(session, OVERVIEW if number % 2 else TUBES) for number in range(count)]
        showing = [asyncio.create_task(console.show()) for console in consoles]
        await asyncio.gather(*(console.shown.wait() for console in consoles))
        announce(open=count)
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([stopped, *showing], return_when=asyncio.FIRST_COMPLETED)
        for task in showing:
            task.cancel()
        await asyncio.gather(*showing, return_exceptions=True)
        announce(reads=sum(console.count for console in consoles))


if __name__ == "__main__":
    asyncio.run(open_consoles(sys.argv[1], sys.argv[2], int(sys.argv[3])))
