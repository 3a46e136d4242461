"""The tasks of a soak, random by a seed: lanes, tenants, priorities, deferral, expiry and results."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from core.model.clock import Backoff
from core.queue import Tube

STRICT, PARKED, CALLS = "strict", "parked", "calls"
ENDS_TO = "checker"
"""The client that receives the end of every task."""

# Leases are lost again and again because of the faults; no task may be buried for that.
_ATTEMPTS = 10_000
_BACKOFF = Backoff(timedelta(milliseconds=20), timedelta(milliseconds=200))
TUBES = (
    Tube(STRICT, attempts=_ATTEMPTS, backoff=_BACKOFF),
    Tube(PARKED, attempts=_ATTEMPTS, backoff=_BACKOFF, retry="park"),
    Tube(CALLS, attempts=_ATTEMPTS, backoff=_BACKOFF),
)

# The results of the runs of a task, and their weights. Each step is one accepted run; the last one ends the task.
_PLANS = {
    ("ok",): 60,
    ("retry", "ok"): 10,
    ("change", "retry", "ok"): 5,
    ("retry", "fail"): 3,
    ("fail",): 3,
    ("bury", "ok"): 3,
    ("long",): 2,
}


@dataclass(frozen=True)
class Shape:
    """One task to put. `due_ms`, `expires_ms`: unix ms; 0 for none."""

    plan: tuple[str, ...]
    takes: float
    tenant: str
    priority: int
    due_ms: int = 0
    expires_ms: int = 0


def shape(chance: random.Random) -> Shape:
    now = datetime.now(UTC).timestamp() * 1000
    due = int(now + chance.uniform(50, 3000)) if chance.random() < 0.2 else 0
    expires = int(max(now, due) + chance.uniform(20, 4000)) if chance.random() < 0.1 else 0
    (plan,) = chance.choices(list(_PLANS), list(_PLANS.values()))
    takes = chance.uniform(0, 0.15)
    return Shape(plan, takes, chance.choice("abc"), chance.choice((1, 5, 5, 9)), due, expires)
