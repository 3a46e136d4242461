"""The loop guard: how many actions one event may start, and how deep scenarios may splice in others (C-90). Pure.

A complaint names the loop, so that an author finds it.
"""

from collections.abc import Mapping, Sequence

from scenarios.bot import Scenario
from scenarios.engine.run import Path, RunLimits, Splice, Step


def refusal(steps: Mapping[Path, Step], step: Step, splice: Splice, limits: RunLimits) -> str:
    """Return why this `scenario` action may not splice; empty if it may."""
    for scenario in splice.scenarios:
        names = [*ancestors(steps, step), scenario.name]
        if len(names) > limits.depth + 1:
            return f"{describe(names)}; scenarios splice in others at most {limits.depth} deep"
    if complaint := too_many(len(steps), splice.scenarios, limits):
        return f"{complaint}; {describe([*ancestors(steps, step), splice.scenarios[0].name])}"
    return ""


def too_many(present: int, scenarios: Sequence[Scenario], limits: RunLimits) -> str:
    """Return a complaint if these scenarios would make more actions than one event may start."""
    wanted = present + sum(len(scenario.actions) for scenario in scenarios)
    if wanted <= limits.actions:
        return ""
    names = ", ".join(scenario.name for scenario in scenarios)
    return f"{names}: one event would start {wanted} actions, at most {limits.actions} are allowed"


def ancestors(steps: Mapping[Path, Step], step: Step) -> list[str]:
    """Return the scenarios from the event to this action, each spliced in by the one before."""
    return [steps[step.path[:length]].scenario for length in range(2, len(step.path) + 1, 2)]


def describe(names: Sequence[str]) -> str:
    """Return the loop that the last name closes, or, without a loop, the whole way."""
    *way, last = names
    if last not in way:
        return f"{' → '.join(names)} are spliced into each other"
    loop = way[len(way) - 1 - way[::-1].index(last) :]
    return f"a loop of scenarios: {' → '.join([*loop, last])}"
