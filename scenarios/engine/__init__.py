"""The pure engine of scenarios: which action runs, waits or is dropped, and what it sees.

`begin` makes a run of an event's scenarios; `end` records what became of one action and returns what this releases and
drops. Guarantees: each action ends exactly once; a finished action wakes what waits for it exactly once; a loop ends at
the limits, with a complaint that names it. No Redis, no YAML, no provider, no clock.
"""

from scenarios.engine.run import (
    ACTION_FAILED,
    ACTION_UNKNOWN,
    DEFAULT_LIMITS,
    NOT_ALLOWED,
    OUTCOMES,
    Cause,
    Effects,
    Ending,
    Path,
    Run,
    RunLimits,
    Splice,
    State,
    Step,
    Values,
    completed,
    failed,
    refused,
    skipped,
    unknown,
)
from scenarios.engine.transitions import IllegalMove, begin, end, handled

__all__ = [
    "ACTION_FAILED",
    "ACTION_UNKNOWN",
    "DEFAULT_LIMITS",
    "NOT_ALLOWED",
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
    "refused",
    "skipped",
    "unknown",
]
