"""Finds chains that do otherwise than they read: questions that are asked at once, failures that nothing reports,
answers to a press that come too late, texts that are never shown (C-102); steps that can never run, because no outcome
of the steps before leads to them; scenarios that the loop guard would stop (C-90): those that splice themselves in,
directly or through others, and those with too many actions.

A state of reachability is the outcome of the previous action, and whether a `chain_drop` has blocked what follows in
its chain.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from scenarios.bot import NAMED, OUTCOMES, Action, Bot, Place, Scenario
from scenarios.check.references import Splices
from scenarios.engine import DEFAULT_LIMITS
from scenarios.engine.graph import SPLICING, spliced_names, words
from scenarios.loader.reading import Problems
from scenarios.schema import ActionType
from scenarios.schema.questions import ASKING
from scenarios.words import Text, sentence

Types = Mapping[str, ActionType]

_SAYING = ("send", "remove", "typing", "answer_press")
"""Actions whose failure is seldom reported to the person: the report would take the same way."""

_WITHOUT_TEXT = ("sign_in", "sign_out")
"""Operations of `job` that return no text."""


def check_order(bot: Bot, problems: Problems) -> None:
    for scenario in bot.scenarios.values():
        for action, first in asked_at_once(bot, scenario):
            problems.error(
                action.place,
                "ASKED_AT_ONCE",
                sentence("question_line_asked_once", line=first.line),
            )
        for action, before in untold(scenario.actions):
            problems.warning(
                action.place,
                "FAILURE_NOT_TOLD",
                sentence("does_not_run_if", line=before.line),
            )


def asked_at_once(bot: Bot, scenario: Scenario) -> Iterator[tuple[Action, Place]]:
    """Yield each question that waits for nothing, with an earlier one. Conditions may choose between both."""
    asked: Place | None = None
    for action in scenario.actions:
        if _asks_first(bot, scenario, action) and not action.fields.get("when"):
            if asked and action.chain is None:
                yield action, asked
            asked = action.place


def _asks_first(bot: Bot, scenario: Scenario, action: Action) -> bool:
    """Return whether an action asks, or splices in a scenario whose first action does."""
    if action.type != "scenario":
        return action.type in ASKING
    parts = [bot.find(name, scenario) for name in spliced_names(action)]
    return any(part.actions[0].type in ASKING for part in parts if part and part.actions)


def untold(actions: tuple[Action, ...]) -> Iterator[tuple[Action, Place]]:
    """Yield the actions with `chain: failed` behind one with `chain: completed`, with the action before both."""
    for number, action in enumerate(actions[2:], 2):
        first, second = actions[number - 2], actions[number - 1]
        after = actions[number + 1].chain if number + 1 < len(actions) else None
        if action.after or first.on_failure or second.after:
            continue
        is_else = action.chain == NAMED["failed"] and second.chain == NAMED["completed"]
        is_told = "drop" in (after or ()) or first.type in (*_SAYING, *SPLICING) or second.chain_drop
        if is_else and not is_told:
            yield action, first.place


def check_replaced_texts(bot: Bot, types: Types, problems: Problems) -> None:
    """Warns of each text that the result `text` of the action before always replaces (C-32)."""
    for scenario in bot.scenarios.values():
        for before, action in pairwise(scenario.actions):
            kind = types.get(before.type)
            returns = kind and "text" in kind.returns and before.fields.get("operation") not in _WITHOUT_TEXT
            is_replaced = returns and action.chain == NAMED["completed"] and not action.after
            if is_replaced and action.type in ("send", *ASKING) and action.fields.get("text"):
                problems.warning(action.place, "TEXT_REPLACED", sentence("text_is_replaced", action=before.type))


def check_late_answers(bot: Bot, types: Types, problems: Problems) -> None:
    """Warns of each `answer_press` that a chain puts behind an action that waits for people or other systems."""
    for scenario in bot.scenarios.values():
        for action, waiting in late_answers(scenario.actions, types):
            message = sentence("press_answered_without_text", action=waiting.type, line=waiting.place.line)
            problems.warning(action.place, "ANSWER_TOO_LATE", message)


def late_answers(actions: tuple[Action, ...], types: Types) -> Iterator[tuple[Action, Action]]:
    """Yield each late answer with the action before it that waits first."""
    waiting: Action | None = None
    for action in actions:
        if action.chain is None:
            waiting = None
        if action.type == "answer_press" and waiting:
            yield action, waiting
        kind = types.get(action.type)
        if waiting is None and (action.type in ASKING or (kind and kind.tube)):
            waiting = action


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
