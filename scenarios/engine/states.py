"""The states of an action and the one table of their transitions.

Pure. docs/scenarios-states.md is generated from NEXT, and tests/scenarios/engine/test_states.py compares every move of
the engine with it.
"""

from enum import StrEnum


class State(StrEnum):
    """The state of an action in a run. The last four are final; they are its outcome."""

    PENDING = "pending"
    HOLD = "hold"
    COMPLETED = "completed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    DROP = "drop"


class Cause(StrEnum):
    """The cause that moved an action to its state (C-39)."""

    UNCHAINED = "unchained"
    FIRST = "first"
    MATCHED = "matched"
    UNMATCHED = "unmatched"
    CUT = "cut"


OUTCOMES = frozenset({State.COMPLETED, State.FAILED, State.UNKNOWN, State.DROP})

NEXT: dict[str, dict[State | None, tuple[State, ...]]] = {
    "create": {None: (State.PENDING, State.HOLD)},
    "release": {State.HOLD: (State.PENDING,)},
    "drop": {State.HOLD: (State.DROP,)},
    "end": {State.PENDING: (State.COMPLETED, State.FAILED, State.UNKNOWN, State.DROP)},
}
"""For each verb, the states it applies to and those that follow. `None`: the action is not in the run yet."""

VERB_MEANINGS = {
    "create": "the action enters the run: it is released at once, or it has a chain and an action before it",
    "release": "the action before it ended with an outcome of its chain",
    "drop": "the action before it ended with another outcome, or a chain_drop ended the chain",
    "end": "the action was executed",
}

CAUSE_MEANINGS = {
    Cause.UNCHAINED: "released at once: it has no chain",
    Cause.FIRST: "released at once: it has a chain, but there is no action before it",
    Cause.MATCHED: "released: the action before it ended with an outcome of its chain",
    Cause.UNMATCHED: "dropped: the action before it ended with another outcome",
    Cause.CUT: "dropped: a chain_drop of an action before it ended the chain",
}


def may_move(verb: str, before: State | None, after: State) -> bool:
    """Return whether the table has this transition."""
    return after in NEXT[verb].get(before, ())
