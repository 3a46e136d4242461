"""The pure engine of scenarios: which action runs, waits or is dropped, and what it sees.

`begin` makes a run of an event's scenarios; `end` records what became of one action and returns what this releases and
drops. Guarantees: each action ends exactly once; a finished action wakes what waits for it exactly once; a loop ends at
the limits, with a complaint that names it. No Redis, no YAML, no provider, no clock.
"""

from scenarios.engine.run import (
    DEFAULT_LIMITS,
    Effects,
    Ending,
    Path,
    Run,
    RunLimits,
    Splice,
    Step,
    Values,
    completed,
    failed,
    skipped,
    unknown,
)
from scenarios.engine.states import OUTCOMES, Cause, State
from scenarios.engine.transitions import IllegalMove, begin, end, handled

__all__ = [
    "DEFAULT_LIMITS",
    "OUTCOMES",
    "Cause",
    "Effects",
    "Ending",
    "IllegalMove",
    "Path",
    "Run",
    "RunLimits",
    "Splice",
    "State",
    "Step",
    "Values",
    "begin",
    "completed",
    "end",
    "failed",
    "handled",
    "skipped",
    "unknown",
]
