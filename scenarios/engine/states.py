"""The states of an action and the one table of their transitions.

Pure. docs/scenarios-states.md is generated from NEXT, and tests/scenarios/engine/test_states.py compares every move of
the engine with it.
"""

from collections.abc import Iterable
from enum import StrEnum


class State(StrEnum):
    """The state of an action in a run. The last three are final; they are its outcome."""

    PENDING = "pending"
    HOLD = "hold"
    COMPLETED = "completed"
    FAILED = "failed"
    DROP = "drop"


class Cause(StrEnum):
    """What moved an action to its state (C-39)."""

    UNCHAINED = "unchained"
    FIRST = "first"
    MATCHED = "matched"
    UNMATCHED = "unmatched"
    CUT = "cut"


OUTCOMES = frozenset({State.COMPLETED, State.FAILED, State.DROP})

NEXT: dict[str, dict[State | None, tuple[State, ...]]] = {
    "create": {None: (State.PENDING, State.HOLD)},
    "release": {State.HOLD: (State.PENDING,)},
    "drop": {State.HOLD: (State.DROP,)},
    "end": {State.PENDING: (State.COMPLETED, State.FAILED, State.DROP)},
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
    """Whether the table has this transition."""
    return after in NEXT[verb].get(before, ())


def outcomes_in(value: object) -> frozenset[State]:
    """The outcomes that an author wrote in `chain` or `chain_drop`: one, a list, or `true` or `any` for all.

    Raises ValueError with the word that is not an outcome.
    """
    if value is True or value == "any":
        return OUTCOMES
    words: Iterable[object] = value if isinstance(value, list | tuple) else [value]
    return frozenset().union(*(_outcomes_of_word(word) for word in words))


def _outcomes_of_word(word: object) -> frozenset[State]:
    if word is True or word == "any":
        return OUTCOMES
    if not isinstance(word, str) or word not in OUTCOMES:
        raise ValueError(f"{word!r} is not one of completed, failed, drop, any")
    return frozenset({State(word)})
