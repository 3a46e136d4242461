"""Writes scenarios in short and plays them with given outcomes, for the tests of the engine."""

from collections.abc import Callable, Iterable
from typing import Any

from scenarios.bot import ANY, Action, Place, Scenario
from scenarios.engine import DEFAULT_LIMITS, Ending, Path, Run, RunLimits, Splice, State, Step, Values, begin, end

PLACE = Place("scenarios/test.yaml")


def action(name: str = "", chain: str = "", chain_drop: str = "", **fields: Any) -> Action:
    """An action of the type `name`. `chain` and `chain_drop`: outcomes with spaces between them, or `any`."""
    waits = frozenset(chain.split()) if chain else None
    return Action(
        type=name or "step",
        fields=fields,
        place=PLACE,
        chain=ANY if chain == "any" else waits,
        chain_drop=ANY if chain_drop == "any" else frozenset(chain_drop.split()),
    )


def scenario(name: str, *actions: Action) -> Scenario:
    return Scenario(name, name, actions, PLACE)


def splice(*names: Scenario, parallel: bool = False) -> Ending:
    return Ending(State.COMPLETED, splice=Splice(names, parallel))


Decide = Callable[[Step], Ending]


def play(scenarios: Iterable[Scenario], decide: Decide, limits: RunLimits = DEFAULT_LIMITS) -> Run:
    """Ends every released action with what `decide` returns, the first path first, until nothing is released."""
    run, effects = begin(list(scenarios), limits, at=1)
    ready, at = list(effects.released), 1
    while ready:
        at += 1
        path = ready.pop(ready.index(min(ready)))
        run, effects = end(run, path, decide(run.steps[path]), at)
        ready += effects.released
    return run


def outcomes(run: Run) -> dict[str, str]:
    """Type → outcome, in the author's order."""
    return {step.action.type: str(step.state) for step in run.in_order}


def ending(outcome: str, **results: Any) -> Ending:
    return Ending(State(outcome), Values(results), error="went wrong" if outcome == "failed" else "")


def by_type(**endings: str | Ending) -> Decide:
    """Decides by the type of the action; what is not named completes."""
    return lambda step: _as_ending(endings.get(step.action.type, "completed"))


def _as_ending(given: str | Ending) -> Ending:
    return given if isinstance(given, Ending) else ending(given)


def path_of(run: Run, name: str) -> Path:
    return next(step.path for step in run.in_order if step.action.type == name)
