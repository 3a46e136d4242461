"""One round: puts, work and latency of every system, each on a fresh server."""

import time
from collections.abc import Mapping, Sequence

from bench.harness.environment import START_TIMEOUT
from bench.harness.measurements import wait_until
from bench.harness.report import percentile
from bench.queue.bullmq.plain_server import PlainServer, plain_server
from bench.queue.bullmq.systems import System
from bench.queue.bullmq.workload import CALLERS, GO, RATE, Workload, lane
from cli.command import CommandFailed
from cli.processes.supervisor import Announcement

_TIMEOUT = 600.0
_PAGE = 200
_WARM_UP_S = 0.5

Figures = Mapping[str, float]
"""Rates are per second, CPU times in µs per task, latencies in ms."""

DONE_RATE, DONE_SERVER, DONE_WORKER = "tasks processed per second", "server µs per processed", "worker µs per processed"
PUT_RATE, PUT_SERVER, PUT_CALLERS = "puts per second", "server µs per put", "callers' µs per put"
BYTES = "bytes of a pending task"
P50, P99 = "latency p50, ms", "latency p99, ms"


async def measure_round(systems: Sequence[System], workload: Workload) -> dict[str, Figures]:
    """Measures each part with one system after the other, seconds apart. Returns the figures by the system's name."""
    found: dict[str, dict[str, float]] = {system.name: {} for system in systems}
    for part in (measure_puts, measure_work, measure_latencies):
        for system in systems:
            async with plain_server() as server:
                found[system.name] |= await part(server, system, workload)
    return dict(found)


async def measure_puts(server: PlainServer, system: System, workload: Workload) -> Figures:
    """Measure single puts by callers of one process; each waits for the answer."""
    await put(server, system, workload.warm_up, _PAGE)
    cpu, used = await server.cpu_seconds(), await server.used_bytes()
    facts = await put(server, system, workload.count, 1)
    cpu, used = await server.cpu_seconds() - cpu, await server.used_bytes() - used
    count = workload.count
    own = 1e6 * facts["cpu"] / count
    return {PUT_RATE: count / facts["seconds"], PUT_SERVER: 1e6 * cpu / count, PUT_CALLERS: own, BYTES: used / count}


async def put(server: PlainServer, system: System, count: int, page: int) -> Announcement:
    command = system(server.url, "put", count, CALLERS if page == 1 else 1, page)
    return await server.run(f"{system.name}: put", command, _TIMEOUT)


async def measure_work(server: PlainServer, system: System, workload: Workload) -> Figures:
    """Measure from the start signal until all tasks have ended. The worker is connected before it."""
    count = workload.count
    await put(server, system, count, _PAGE)
    file = server.directory / "lines"
    worker = await server.start(f"{system.name}: work", system(server.url, "work", file, "wait"))
    try:
        await worker.facts(START_TIMEOUT)
        cpu, began = await server.cpu_seconds(), time.time()
        await server.redis.rpush(GO, "go")
        seconds = await all_done(server, system, count) / 1000 - began
        cpu = await server.cpu_seconds() - cpu
        await worker.stop()
        worker_cpu = (await worker.facts(START_TIMEOUT))["cpu"]
    finally:
        await worker.stop()
    check_lines([int(line) for line in file.read_text().split()], count, system.lanes)
    return {DONE_RATE: count / seconds, DONE_SERVER: 1e6 * cpu / count, DONE_WORKER: 1e6 * worker_cpu / count}


async def all_done(server: PlainServer, system: System, count: int) -> float:
    async def are_done() -> bool:
        return await system.done(server.redis, count) >= count

    return await wait_until(are_done, _TIMEOUT, f"{system.name}: the end of {count:,} tasks")


def check_lines(numbers: list[int], count: int, lanes: bool) -> None:
    """Check what a system has handled. Raises CommandFailed unless each task was handled exactly once, and with lanes
    in the order of its lane.
    """
    if sorted(numbers) != list(range(count)):
        raise CommandFailed(f"{len(set(numbers)):,} of {count:,} tasks were handled, in {len(numbers):,} attempts")
    if lanes and sorted(numbers, key=lane) != sorted(numbers, key=lambda number: (lane(number), number)):
        raise CommandFailed("tasks of one lane were not handled in the order of their puts")


async def measure_latencies(server: PlainServer, system: System, workload: Workload) -> Figures:
    """Measure from put to the start of the handler, for tasks that arrive one by one. Those of the first half second,
    in which the programs warm up, are left out.
    """
    count = round(RATE * (workload.latency_s + _WARM_UP_S))
    worker = await server.start(f"{system.name}: work", system(server.url, "work", server.directory / "lines", "now"))
    try:
        await worker.facts(START_TIMEOUT)
        await server.run(f"{system.name}: flow", system(server.url, "flow", count, RATE), _TIMEOUT)
        await all_done(server, system, count)
        await worker.stop()
        latencies: list[float] = (await worker.facts(START_TIMEOUT))["latencies"]
    finally:
        await worker.stop()
    warm = latencies[round(RATE * _WARM_UP_S) :]
    return {P50: percentile(warm, 0.5), P99: percentile(warm, 0.99)}
