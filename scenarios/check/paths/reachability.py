"""Finds steps that can never run: no outcome of the steps before leads to them; and scenarios that the loop guard would
stop (C-90): those that splice themselves in, directly or through others, and those with too many actions.

A state is the outcome of the previous action, and whether a `chain_drop` has blocked what follows in its chain.
"""

from collections.abc import Mapping

from scenarios.bot import OUTCOMES, Action, Bot, Place, Scenario
from scenarios.check.paths.references import Splices
from scenarios.engine import DEFAULT_LIMITS
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
    named: dict[str, frozenset[State]] = {}
    for index, action in enumerate(scenario.actions):
        states = named.get(action.after, states)
        if index and action.chain != frozenset() and not any(runs_after(action, state) for state in states):
            found.append(action)
        states = states_after(action, states, types)
        if action.step:
            named[action.step] = states
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


_NAMES = 10
"""The most scenarios that are named of a loop."""


def check_loops(bot: Bot, splices: Splices, problems: Problems) -> None:
    """Report each splice that closes a loop, with the names along the loop."""
    finished: set[str] = set()
    for name in bot.scenarios:
        if name not in finished:
            for path, place in loops_from(name, splices, finished):
                problems.error(place, "SCENARIO_LOOP", sentence("these_scenarios_splice_each", path=path))


def check_sizes(bot: Bot, problems: Problems) -> None:
    """Warns of scenarios that alone have more actions than one event may start."""
    for scenario in bot.scenarios.values():
        if len(scenario.actions) > DEFAULT_LIMITS.actions:
            message = sentence("actions_one_event_may", count=len(scenario.actions), most=DEFAULT_LIMITS.actions)
            problems.warning(scenario.place, "TOO_MANY_ACTIONS", message)


def loops_from(start: str, splices: Splices, finished: set[str]) -> list[tuple[str, Place]]:
    """Return the loops that a depth-first walk from `start` closes; names it has left are added to `finished`."""
    found = []
    path, open_splices = [start], [iter(splices.get(start, ()))]
    on_path = {start}
    while path:
        splice = next(open_splices[-1], None)
        if splice is None:
            open_splices.pop()
            on_path.discard(path[-1])
            finished.add(path.pop())
            continue
        target, place = splice
        if target in on_path:
            found.append((_along([*path[path.index(target) :], target]), place))
        elif target not in finished:
            path.append(target)
            on_path.add(target)
            open_splices.append(iter(splices.get(target, ())))
    return found


def _along(names: list[str]) -> str:
    """Return the names along a loop; of a long one the first and the last."""
    shown = names if len(names) <= _NAMES else [*names[: _NAMES // 2], "…", *names[-_NAMES // 2 :]]
    return " → ".join(shown)
