"""Measures Ada and BullMQ in alternate rounds, and prints each figure of both with its ratio and what is wanted.

In a round every part (puts, work, latency) is measured with one system after the other, each on a fresh server.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.harness.environment import START_TIMEOUT
from bench.harness.measurements import server_cpu_seconds, server_size, wait_until
from bench.harness.report import Row, Rows, log_progress, median, percentile, report_target
from bench.queue.bullmq.ada_program import CALLERS, FULL, GO, RATE, SHORT, Workload, lane
from bench.queue.bullmq.systems import BULLMQ, PlainServer, System, ada, bullmq, install, plain_server
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
    cpu, used = await server_cpu_seconds(server.redis), (await server_size(server.redis)).bytes
    facts = await put(server, system, workload.count, 1)
    cpu, used = await server_cpu_seconds(server.redis) - cpu, (await server_size(server.redis)).bytes - used
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
        cpu, began = await server_cpu_seconds(server.redis), time.time()
        await server.redis.rpush(GO, "go")
        seconds = await all_done(server, system, count) / 1000 - began
        cpu = await server_cpu_seconds(server.redis) - cpu
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


WITH, WITHOUT = ada(lanes=True), ada(lanes=False)
LANES = {WITH.name: "ten to each", WITHOUT.name: "none"}
Rounds = Sequence[Mapping[str, Figures]]
"""By round: system → figures."""


@dataclass(frozen=True, slots=True)
class BullmqTarget:
    """The limit of a ratio to BullMQ; with `absolute` Ada's own figure."""

    limit: float
    at: Literal["≥", "≤"] = "≥"
    absolute: bool = False

    def __str__(self) -> str:
        return f"{self.at} {self.limit:g}{'' if self.absolute else ' ×'}"

    def is_met(self, value: float) -> bool:
        return value >= self.limit if self.at == "≥" else value <= self.limit


TARGETS: Mapping[str, tuple[BullmqTarget | None, BullmqTarget | None]] = {
    DONE_RATE: (BullmqTarget(1.3), BullmqTarget(1.6)),
    PUT_RATE: (BullmqTarget(1.5), BullmqTarget(1.5)),
    P50: (None, None),
    P99: (BullmqTarget(1.0, "≤"), BullmqTarget(1.0, "≤")),
    BYTES: (BullmqTarget(400, "≤", absolute=True), None),
    PUT_SERVER: (None, None),
    PUT_CALLERS: (None, None),
    DONE_SERVER: (None, None),
    DONE_WORKER: (None, None),
}
"""By figure: with lanes, without."""

ELSEWHERE = {
    "claim beside 100,000 locked lanes and 1,000,000 deferred tasks": ("flat", "./ada bench queue claim"),
    "due lag, p99 ms, 0 to 1,000,000 pending": ("≤ 3", "./ada bench lag"),
    "audit of 100,000 tasks, s": ("≤ 15", "./ada bench queue audit"),
}
"""Figures of Ada alone: what is wanted, and the command that measures it."""


async def measure(short: bool, rounds: int | None, rows: Rows) -> None:
    workload = SHORT if short else FULL
    with tempfile.TemporaryDirectory(prefix="ada-bench-bullmq-") as directory:
        await install(Path(directory))
        systems = WITH, WITHOUT, bullmq(Path(directory))
        show(rows, await measure_rounds(systems, workload, rounds or workload.rounds))


async def measure_rounds(systems: Sequence[System], workload: Workload, rounds: int) -> Rounds:
    """Measures every system in every round, each round in the opposite order."""
    found = []
    for number in range(rounds):
        log_progress(f"round {number + 1} of {rounds}")
        found.append(await measure_round(systems[:: -1 if number % 2 else 1], workload))
    return found


def show(rows: Rows, rounds: Rounds) -> None:
    ratios = {
        (figure, system): show_figure(rows, figure, target, system, rounds)
        for figure, targets in TARGETS.items()
        for system, target in zip((WITH.name, WITHOUT.name), targets, strict=True)
    }
    for name, (wanted, command) in ELSEWHERE.items():
        rows.show({"part": BULLMQ, "figure": name, "wanted": wanted, "measured_by": command})
    for figure, targets in TARGETS.items():
        for system, target in zip((WITH.name, WITHOUT.name), targets, strict=True):
            if target:
                value = median([one[system][figure] for one in rounds]) if target.absolute else ratios[figure, system]
                report_target(f"{figure}, {system}", value, str(target), target.is_met(value))


def show_figure(rows: Rows, figure: str, target: BullmqTarget | None, system: str, rounds: Rounds) -> float:
    """Shows the median of the rounds, the least and the greatest, of Ada and of BullMQ. Returns the median of the
    ratios within each round.
    """
    own, theirs = ([one[name][figure] for one in rounds] for name in (system, BULLMQ))
    ratio = median([mine / other for mine, other in zip(own, theirs, strict=True)])
    columns = {**range_columns("ada", own), **range_columns(BULLMQ, theirs)}
    row: Row = {"part": BULLMQ, "figure": figure, "lanes": LANES[system], **columns, "ratio": round(ratio, 2)}
    rows.show({**row, "wanted": str(target or "-")})
    return ratio


def range_columns(name: str, values: Sequence[float]) -> Mapping[str, float]:
    shown = {name: median(values), f"{name}_min": min(values), f"{name}_max": max(values)}
    return {column: round(value) if value >= 100 else round(value, 2) for column, value in shown.items()}
