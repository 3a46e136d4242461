"""The pure engine of scenarios: which action runs, waits or is dropped, and what it sees.

`begin` makes a run of an event's scenarios; `end` records what became of one action and returns what this releases and
drops. Guarantees: each action ends exactly once; a finished action wakes what waits for it exactly once; a loop ends at
the limits, with a complaint that names it. No Redis, no YAML, no provider, no clock.
"""

from scenarios.engine.run import Effects, Ending, Limits, Path, Run, Splice, Step, Values
from scenarios.engine.scenario import Action, Scenario, action_from
from scenarios.engine.states import OUTCOMES, Cause, State, outcomes_in
from scenarios.engine.transitions import IllegalMove, begin, end

__all__ = [
    "OUTCOMES",
    "Action",
    "Cause",
    "Effects",
    "Ending",
    "IllegalMove",
    "Limits",
    "Path",
    "Run",
    "Scenario",
    "Splice",
    "State",
    "Step",
    "Values",
    "action_from",
    "begin",
    "end",
    "outcomes_in",
]
