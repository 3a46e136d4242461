"""The tasks of both systems, and how many of them. `bullmq_program.js` makes the same bodies."""

import json
import time
from dataclasses import dataclass

TUBE = "bench"
GO = "bench:go"
"""A worker that waits begins when this list has an element."""

CALLERS, CONCURRENCY, RATE = 32, 100, 100
_BODY_LENGTH, _TO_A_LANE = 200, 10


_TEXT = "x" * (_BODY_LENGTH + len("00") - len(json.dumps({"number": 0, "put": 0, "text": ""})))


@dataclass(frozen=True, slots=True)
class Workload:
    """`count`: tasks put and tasks handled in each round; `warm_up`: tasks put before anything is measured.
    `latency_s`: seconds for which tasks are put one by one.
    """

    count: int = 20_000
    warm_up: int = 200
    rounds: int = 5
    latency_s: float = 10.0


FULL, SHORT = Workload(), Workload(count=500, warm_up=50, rounds=1, latency_s=1.0)


def body(number: int) -> str:
    """Return JSON of 200 characters with the number of the task and the moment of its put (ns, monotonic clock)."""
    put = time.monotonic_ns()
    return json.dumps({"number": number, "put": put, "text": _TEXT[len(str(number)) + len(str(put)) :]})


def lane(number: int) -> str:
    """Return the lane of a task; ten consecutive tasks have the same one."""
    return f"user {number // _TO_A_LANE}"
