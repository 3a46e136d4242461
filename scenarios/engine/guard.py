"""The loop guard: how many actions one event may start, and how deep scenarios may splice in others (C-90). Pure.

A complaint names the loop, so that an author finds it.
"""

from collections.abc import Mapping, Sequence

from scenarios.bot import Scenario
from scenarios.engine.run import Path, RunLimits, Splice, Step
from scenarios.words import Text, sentence


def refusal(steps: Mapping[Path, Step], step: Step, splice: Splice, limits: RunLimits) -> Text:
    """Return why this `scenario` action may not splice; empty if it may."""
    for scenario in splice.scenarios:
        names = [*ancestors(steps, step), scenario.name]
        if len(names) > limits.depth + 1:
            return sentence("scenarios_splice_others_most", text=describe(names), most=limits.depth)
    if complaint := too_many(len(steps), splice.scenarios, limits):
        return sentence(
            "and_also", first=complaint, second=describe([*ancestors(steps, step), splice.scenarios[0].name])
        )
    return ""


def too_many(present: int, scenarios: Sequence[Scenario], limits: RunLimits) -> Text:
    """Return a complaint if these scenarios would make more actions than one event may start."""
    wanted = present + sum(len(scenario.actions) for scenario in scenarios)
    if wanted <= limits.actions:
        return ""
    names = ", ".join(scenario.name for scenario in scenarios)
    return sentence("one_event_would_start", names=names, count=wanted, most=limits.actions)


def ancestors(steps: Mapping[Path, Step], step: Step) -> list[str]:
    """Return the scenarios from the event to this action, each spliced in by the one before."""
    return [steps[step.path[:length]].scenario for length in range(2, len(step.path) + 1, 2)]


def describe(names: Sequence[str]) -> Text:
    """Return the loop that the last name closes, or, without a loop, the whole way."""
    *way, last = names
    if last not in way:
        return sentence("spliced_into_each_other", names=" → ".join(names))
    loop = way[len(way) - 1 - way[::-1].index(last) :]
    return sentence("loop_scenarios", names=" → ".join([*loop, last]))
