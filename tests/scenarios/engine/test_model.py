"""Random scenarios with random outcomes end in the engine as the rows say, in whatever order their actions end."""

from collections.abc import Mapping
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.bot import Action, Scenario
from scenarios.engine import Ending, Run, Splice, State, Values, begin, end
from scenarios.engine.run import NEXT, may_move
from tests.scenarios.engine.play import action, scenario
from tests.scenarios.engine.reference import Expected, Planned, read
from tests.support.hypothesis_settings import SETTINGS

OUTCOMES = ("completed", "failed", "unknown", "drop")
CHAINS = ("", "", *OUTCOMES, "completed failed", "failed drop", "any", "any")
CHAIN_DROPS = ("", "", "", "", *OUTCOMES, "any")


@st.composite
def plans(draw: st.DrawFn) -> tuple[Scenario, dict[str, Planned]]:
    """A scenario whose actions have types of their own, and what each of them does."""
    plan: dict[str, Planned] = {}
    return draw_scenario(draw, plan, depth=3), plan


def draw_scenario(draw: st.DrawFn, plan: dict[str, Planned], depth: int) -> Scenario:
    actions = [draw_action(draw, plan, depth) for _ in range(draw(st.integers(0, 5 if depth == 3 else 3)))]
    return scenario(f"scenario{len(plan)}", *actions)


def draw_action(draw: st.DrawFn, plan: dict[str, Planned], depth: int) -> Action:
    name = f"action{len(plan)}"
    plan[name] = Planned("", {})  # reserves the name
    plan[name] = draw_planned(draw, plan, name, depth)
    return action(name, draw(st.sampled_from(CHAINS)), draw(st.sampled_from(CHAIN_DROPS)))


def draw_planned(draw: st.DrawFn, plan: dict[str, Planned], name: str, depth: int) -> Planned:
    results = {name: 1, "last": name} if draw(st.booleans()) else {}
    if depth and draw(st.integers(0, 2)) == 0:
        parallel = draw(st.booleans())
        count = draw(st.integers(0, 3)) if parallel else 1
        inner = tuple(draw_scenario(draw, plan, depth - 1) for _ in range(count))
        return Planned("completed", results, inner, parallel)
    return Planned(draw(st.sampled_from(OUTCOMES)), results)


def play_in_random_order(scenario: Scenario, plan: Mapping[str, Planned], random: Random) -> Run:
    run, effects = begin([scenario])
    ready = list(effects.released)
    while ready:
        path = ready.pop(random.randrange(len(ready)))
        before = run
        run, effects = end(run, path, ending_of(plan[run.steps[path].action.type]))
        check_moves(before, run)
        ready += effects.released
    return run


def ending_of(planned: Planned) -> Ending:
    splice = None if planned.scenarios is None else Splice(planned.scenarios, planned.parallel)
    return Ending(State(planned.outcome), Values(planned.results), splice=splice)


def check_moves(before: Run, after: Run) -> None:
    """Each action that moved made one or two moves of the table, and an ended one did not move."""
    for path, step in after.steps.items():
        old = before.steps[path].state if path in before.steps else None
        if old is not step.state:
            assert any(may_move(verb, old, step.state) for verb in NEXT) or old is None
            assert old not in OUTCOMES


def ended_steps(run: Run) -> list[Expected]:
    return [Expected(step.action.type, str(step.state), without_error(step.values.results)) for step in run.in_order]


def without_error(results: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in results.items() if name not in ("error", "code")}


@settings(SETTINGS)
@given(planned=plans(), random=st.randoms(use_true_random=False))
def test_random_scenarios_end_as_the_rows_say(planned: tuple[Scenario, dict[str, Planned]], random: Random) -> None:
    scenario, plan = planned
    run = play_in_random_order(scenario, plan, random)
    assert run.is_over
    assert ended_steps(run) == read(plan, scenario)
