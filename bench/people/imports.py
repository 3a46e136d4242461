"""bench people import: a CSV file with many people over HTTP, while another client sends PINGs."""

import time

from bench.harness.environment import START_TIMEOUT, Environment, environment
from bench.harness.measurements import LONG_SCRIPT_US, latency_columns, script_timings
from bench.harness.report import Rows, log_progress, report_target
from bench.people.samples import import_csv, people_csv, start_api
from bench.people.sizes import Sizes
from bench.queue.queue_environment import values_between
from cli.client.http_client import HttpClient

LONGEST_MS, PING_MS = 10.0, 10.0


async def measure(sizes: Sizes, rows: Rows) -> None:
    """Measure the import of new people, then of the same file again, which changes nothing."""
    content = people_csv(sizes.imported)
    async with environment() as env:
        api = await start_api(env)
        for state in ("new", "existing"):
            await measure_import(env, api, state, sizes.imported, content, rows)


async def measure_import(env: Environment, api: HttpClient, state: str, count: int, content: bytes, rows: Rows) -> None:
    pings = await env.start("pings", "bench.queue.processes.pings", env.url)
    await pings.facts(START_TIMEOUT)
    async with script_timings(env.redis, LONG_SCRIPT_US) as timings:
        began = time.time()
        await import_csv(api, "users", content)
        ended = time.time()
    await env.stop_child(pings)
    waits = values_between((await pings.facts(START_TIMEOUT))["waits"], began * 1000, ended * 1000)
    log_progress(f"import of {count:,} {state} people: {ended - began:.1f} s")
    scripts = {"script_p50_ms": timings.median_ms, "longest_script_ms": timings.longest_ms}
    pinged = latency_columns("ping", waits)
    seconds = {"seconds": round(ended - began, 2), "people_per_s": round(count / (ended - began))}
    rows.show({"part": "import", "people": state, "n": count, **seconds, **scripts, **pinged})
    report_target(
        f"import of {state} people, longest script, ms",
        timings.longest_ms,
        f"≤ {LONGEST_MS:g}",
        timings.longest_ms <= LONGEST_MS,
    )
    ping = float(pinged["ping_p99_ms"] or 0)
    report_target("a PING meanwhile, p99 ms", ping, f"≤ {PING_MS:g}", ping <= PING_MS)
