"""A run: all actions that one event started, and what became of each. Pure and immutable.

A path names an action of a run: (0, 2) is the third action of the first scenario; (0, 2, 1, 0) is the first action of
the second branch that (0, 2) spliced in. A path depends only on event and scenarios, so a repeated event gives the same
paths (C-92). Sorted paths are the order in which an author reads the actions.

docs/scenarios-states.md is generated from NEXT, the table of the transitions of an action's state;
tests/scenarios/engine/test_states.py compares every move of the engine with it.

`completed`, `failed`, `skipped` and `unknown` make the usual endings of an executed action; `splice` and
`for_each` those of the actions that go on with other scenarios (C-33 to C-35, C-94).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from core.errors import Refused
from core.model.json_form import JsonObject
from scenarios.bot import Action, Bot, Scenario
from scenarios.bot.data import Data
from scenarios.words import Text, placed, sentence, together, why_refused


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
    return after in NEXT[verb].get(before, ())


Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """The values that the chain so far gives to an action: the results of its actions, and attributes that became
    variables.

    `from_person`: the names of those that a person has written; texts for a person's chat escape them.
    """

    results: JsonObject = field(default_factory=dict)
    variables: JsonObject = field(default_factory=dict)
    from_person: frozenset[str] = frozenset()

    def and_then(self, later: "Values") -> "Values":
        """Return both together; later values replace earlier ones."""
        replaced = later.results.keys() | later.variables.keys()
        return Values(
            {**self.results, **later.results},
            {**self.variables, **later.variables},
            (self.from_person - replaced) | later.from_person,
        )

    def seen_with(self, attributes: Mapping[str, Data], event: Mapping[str, Data]) -> dict[str, Data]:
        """Return the flat mapping that an action sees: results over its attributes over variables over the event
        (C-32)."""
        return {**event, **self.variables, **attributes, **self.results}


@dataclass(frozen=True, slots=True)
class Splice:
    """The scenarios that an action inserts. `parallel`: they are branches; the next action does not wait. `given`: what
    each of them sees besides, in their order; empty if none sees more.

    `collect`: the next action waits for the end of all branches, and gets these of their results; None if it does not
    wait. `at_once`: how many branches are under way at the same time, 0 for all.
    """

    scenarios: tuple[Scenario, ...]
    parallel: bool = False
    given: tuple[Mapping[str, Data], ...] = ()
    collect: tuple[str, ...] | None = None
    at_once: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an executed action, and its result. `error`, `code`: why it failed or is unknown.
    `handler`: the scenario that this end starts, if the action has one for it (C-104).
    """

    state: State
    returned: Values = field(default_factory=Values)
    error: Text = ""
    splice: Splice | None = None
    handler: Scenario | None = None
    code: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a run.

    `after`: the action before it, whose outcome its chain depends on; `None` for the first. `values`: those of its
    chain so far, complete when it is released or dropped. `given`: values of the `scenario` actions between it and
    `after`. `cause`, `caused_by` and `moved_at`: what released or dropped it, the action that did, and when (ms);
    `cause` is `None` while it is held.
    """

    path: Path
    scenario: str
    action: Action
    state: State
    after: Path | None = None
    values: Values = field(default_factory=Values)
    given: Values = field(default_factory=Values)
    cause: Cause | None = None
    caused_by: Path | None = None
    moved_at: int = 0
    ending: Ending | None = None
    ended_at: int = 0

    @property
    def is_over(self) -> bool:
        return self.state in OUTCOMES

    @property
    def cuts(self) -> bool:
        """Return whether everything chained after it ends as drop (C-28)."""
        return self.cause is Cause.CUT or self.state in self.action.chain_drop

    def language(self, event: Mapping[str, Data]) -> str:
        """Return the language of the person, "" if it is not known: what the chain says goes before the event."""
        return str(self.values.seen_with({}, event).get("language") or "")

    @property
    def collecting(self) -> Splice | None:
        """Return what the action has spliced in, if the next one waits for all of it."""
        splice = self.ending.splice if self.ending else None
        return splice if splice and splice.collect is not None else None

    @property
    def passed_on(self) -> Values:
        """Return the values that the next action of the chain gets."""
        return self.values if self.ending is None else self.values.and_then(self.ending.returned)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The loop guard (C-90): actions of one event, and how deep scenarios may splice in others."""

    actions: int = 1000
    depth: int = 20


DEFAULT_LIMITS = RunLimits()


@dataclass(frozen=True, slots=True)
class Run:
    """All steps by path. `followers`: the steps behind each one, by its path. `unfinished`: the number of steps without
    an outcome. `limits` hold for the run as a whole. `language`: that of the person of the event, "" if there is none.
    """

    steps: Mapping[Path, Step] = field(default_factory=dict)
    followers: Mapping[Path, tuple[Path, ...]] = field(default_factory=dict)
    unfinished: int = 0
    limits: RunLimits = DEFAULT_LIMITS
    language: str = ""

    @property
    def is_over(self) -> bool:
        return self.unfinished == 0

    @property
    def in_order(self) -> list[Step]:
        """The steps as an author reads them: what was spliced in stands behind its `scenario` action."""
        return [self.steps[path] for path in sorted(self.steps)]


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of a transition: the actions to execute now, the dropped ones, and complaints for the author."""

    released: tuple[Path, ...] = ()
    dropped: tuple[Path, ...] = ()
    complaints: tuple[Text, ...] = ()


ACTION_FAILED = "ACTION_FAILED"
"""The code of a failure that has no other."""
ACTION_UNKNOWN = "ACTION_UNKNOWN"
"""There is no such action."""
NOT_ALLOWED = "NOT_ALLOWED"
"""The person may not run the action, or it is switched off."""


def completed(results: Mapping[str, Data] | None = None, from_person: Iterable[str] = ()) -> Ending:
    """Return the action completed with these results. `from_person`: the names of those that a person has written."""
    return Ending(State.COMPLETED, Values(results or {}, from_person=frozenset(from_person)))


def failed(code: str, error: Text, results: Mapping[str, Data] | None = None) -> Ending:
    """Return the action failed; later actions see why as `{error}` and `{code}`."""
    return Ending(State.FAILED, Values(results or {}), error, code=code)


def skipped(reason: Text) -> Ending:
    """Return the ending of an action that does not apply: it ends as drop, and `show RUN` has the reason."""
    return Ending(State.DROP, error=reason)


def unknown(code: str, error: Text, results: Mapping[str, Data] | None = None) -> Ending:
    """Return the ending of an action that may have done what it should; later actions see why, as of `failed`."""
    return Ending(State.UNKNOWN, Values(results or {}), error, code=code)


def refused(refusal: Refused, results: Mapping[str, Data] | None = None) -> Ending:
    """Return the ending of an action that a rule refuses; the error stands behind the code."""
    return failed(refusal.code, placed(refusal.code, why_refused(refusal)), results)


ITEM = "item"
MOST_ITEMS = 100


Parameters = Mapping[str, Data]


def splice(bot: Bot, step: Step, named: str | Sequence[str], parameters: Parameters) -> Ending:
    """Splices in the scenarios that exist; with an unknown name the action fails. A list of names makes branches.
    `parameters`: what their actions see besides.
    """
    names = [named] if isinstance(named, str) else named
    caller = bot.scenarios.get(step.scenario)
    found = [bot.find(name, caller) for name in names]
    errors = [unknown_scenario(bot, name) for name, one in zip(names, found, strict=True) if one is None]
    known = tuple(one for one in found if one is not None)
    given = (dict(parameters),) * len(known) if parameters else ()
    inserted = Splice(known, not isinstance(named, str), given)
    state, code = (State.FAILED, "SCENARIO_UNKNOWN") if errors else (State.COMPLETED, "")
    return Ending(state, error=together(errors), splice=inserted, code=code)


def for_each(
    bot: Bot,
    step: Step,
    name: str,
    items: Sequence[Data],
    word: str,
    parameters: Parameters,
    collect: tuple[str, ...] | None = None,
    at_once: int = 0,
) -> Ending:
    """Splices in the scenario once for each item, side by side; with an unknown name the action fails. `word`: the name
    under which its actions see the item. `collect`, `at_once`: as in `Splice`.
    """
    scenario = bot.find(name, bot.scenarios.get(step.scenario))
    if scenario is None:
        return failed("SCENARIO_UNKNOWN", unknown_scenario(bot, name))
    given = tuple({**parameters, word: item, "number": n} for n, item in enumerate(items, 1))
    spliced = Splice((scenario,) * len(items), parallel=True, given=given, collect=collect, at_once=at_once)
    return Ending(State.COMPLETED, Values({"count": len(items)}), splice=spliced)


def unknown_scenario(bot: Bot, name: str) -> Text:
    """Return the complaint about a name that no scenario has, or several."""
    if several := bot.short_names.get(name):
        return sentence("several_scenarios_called", name=name, words=", ".join(several))
    return sentence("no_scenario", name=name)
