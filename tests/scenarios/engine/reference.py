"""The rows C-24 to C-34 as a slow function: a scenario is read from top to bottom, splices in their place.

It knows no states and no events: the outcome of an action follows from the action before it in the text. `Planned` says
in advance what each action would return and splice if it ran.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scenarios.bot import Action, Scenario

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Planned:
    """What an action does when it runs. `scenarios`: what it splices in; None if it is no `scenario` action."""

    outcome: str
    results: Results
    scenarios: tuple[Scenario, ...] | None = None
    parallel: bool = False


@dataclass(frozen=True)
class Before:
    """The action before, as the next one sees it. `outcome` None: there is none. `cut`: the chain has ended."""

    outcome: str | None
    cut: bool
    results: Results


@dataclass(frozen=True)
class Expected:
    """What became of one action, and what it saw."""

    action: str
    outcome: str
    seen: Results


def read(plan: Mapping[str, Planned], scenario: Scenario) -> list[Expected]:
    expected: list[Expected] = []
    read_actions(plan, scenario.actions, Before(None, False, {}), {}, expected)
    return expected


def read_actions(
    plan: Mapping[str, Planned], actions: Sequence[Action], before: Before, base: Results, expected: list[Expected]
) -> Before:
    """Reads actions that stand one below the other; returns what the action below them has before it."""
    for action in actions:
        before = read_action(plan, action, before, base, expected)
    return before


def read_action(
    plan: Mapping[str, Planned], action: Action, before: Before, base: Results, expected: list[Expected]
) -> Before:
    planned = plan[action.type]
    seen = base if action.chain is None else before.results
    if not runs(action, before):
        expected.append(Expected(action.type, "drop", seen))
        return Before("drop", before.cut or "drop" in action.chain_drop, seen)
    expected.append(Expected(action.type, planned.outcome, seen))
    returned = {**seen, **planned.results}
    this = Before(planned.outcome, planned.outcome in action.chain_drop, returned)
    if planned.scenarios is None:
        return this
    above = replace(before, results={**before.results, **planned.results})
    ends = [read_actions(plan, one.actions, above, returned, expected) for one in planned.scenarios]
    if this.cut:
        return this
    follows_last = not planned.parallel and planned.scenarios and planned.scenarios[-1].actions
    return ends[-1] if follows_last else above


def runs(action: Action, before: Before) -> bool:
    if action.chain is None or before.outcome is None:
        return True
    return not before.cut and before.outcome in action.chain
