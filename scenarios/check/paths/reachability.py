"""Finds steps that can never run: no outcome of the steps before leads to them.

A state is the outcome of the previous action, and whether a `chain_drop` has blocked what follows in its chain.
"""

from collections.abc import Mapping

from scenarios.bot import OUTCOMES, Action, Bot, Scenario
from scenarios.engine.graph import SPLICING, words
from scenarios.loader.problem import Problems
from scenarios.schema import ActionType
from scenarios.words import Text, sentence

Types = Mapping[str, ActionType]
State = tuple[str, bool]
"""Outcome of the previous action, and whether the chain is blocked."""

_ANYTHING: frozenset[State] = frozenset((outcome, False) for outcome in OUTCOMES)
"""Nothing is known: a scenario may be spliced in after anything, and a splice may end in any way."""


def check_reachability(bot: Bot, types: Types, problems: Problems) -> None:
    for scenario in bot.scenarios.values():
        for action in unreachable(scenario, types):
            problems.error(action.place, "UNREACHABLE", why(action))


def unreachable(scenario: Scenario, types: Types) -> list[Action]:
    """Return the actions that can never run, in order. The first one always can (C-26)."""
    found, states = [], _ANYTHING
    for index, action in enumerate(scenario.actions):
        if index and action.chain != frozenset() and not any(runs_after(action, state) for state in states):
            found.append(action)
        states = states_after(action, states, types)
    return found


def runs_after(action: Action, state: State) -> bool:
    outcome, blocked = state
    return action.chain is None or (outcome in action.chain and not blocked)


def states_after(action: Action, states: frozenset[State], types: Types) -> frozenset[State]:
    if action.type in SPLICING or action.chain == frozenset():
        return _ANYTHING
    outcomes = {*types[action.type].outcomes} if action.type in types else {*OUTCOMES}
    if action.fields.get("when"):
        outcomes.add("drop")
    after: set[State] = set()
    for state in states:
        if runs_after(action, state):
            after |= {(outcome, outcome in action.chain_drop) for outcome in outcomes}
        else:
            after.add(("drop", state[1] or "drop" in action.chain_drop))
    return frozenset(after)


def why(action: Action) -> Text:
    wanted = words(action.chain or frozenset())
    return sentence("step_never_runs_waits", outcomes=wanted)
