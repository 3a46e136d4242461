"""Alternates Ada and BullMQ, round by round, and prints each figure of both with its ratio and what is wanted."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.harness.report import Row, Rows, log_progress, median, report_target
from bench.queue.bullmq.rounds import (
    BYTES,
    DONE_RATE,
    DONE_SERVER,
    DONE_WORKER,
    P50,
    P99,
    PUT_CALLERS,
    PUT_RATE,
    PUT_SERVER,
    Figures,
    measure_round,
)
from bench.queue.bullmq.systems import BULLMQ, System, ada, bullmq, install
from bench.queue.bullmq.workload import FULL, SHORT, Workload

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
