"""Finds the fields that each action of a bot can read: the fields of the event, the values of the chain before it, its
own (C-31, C-32).

All ways into a scenario count together, as one of them may bring a name. A name that is not here is never there.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from core.errors import Refused
from scenarios.bot import Action, Bot, Scenario
from scenarios.bot.data import ListNode, MapNode, Node
from scenarios.bot.event_fields import FIELDS
from scenarios.bot.model import SCOPES, Variable
from scenarios.bot.times import NAMES, SECONDS
from scenarios.engine.graph import SPLICING, is_parallel, spliced_names
from scenarios.engine.run import ITEM, OUTCOMES, State
from scenarios.placeholders.attributes import CONTROL_FIELDS
from scenarios.schema import ActionType

Names = frozenset[str]

ANYTHING = "*"
"""Stands among the names if an action before is not known, so that any name may be there."""

_EVENT: Names = frozenset(FIELDS)
_NOTHING: Names = frozenset()
_SCOPES: Names = frozenset(SCOPES)
FAILURE = ("error", "code")
"""What every action returns if it fails or its outcome is unknown."""
_REFUSAL = Refused("ANY", "")
"""Shows what an action returns with its failure."""


@dataclass(frozen=True, slots=True)
class VisibleNames:
    """The names that one action can read. `own`: its attributes, `chain`: what the chain before it gives, `unchained`:
    what it would see besides if it had a `chain`. `perhaps`: those of `chain` that are there only if an action before
    completed, although this one runs after its failure, too. `variables`: those that the bot declares.
    """

    own: Names
    chain: Names
    unchained: Names
    perhaps: Names = _NOTHING
    variables: Mapping[str, Variable] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Return whether the names are all that it can see."""
        return ANYTHING not in self.chain

    def names(self, field: str = "") -> Names:
        """Return all names; in the text of a field without that field, which does not see itself."""
        hidden = _SCOPES if self.variables else _NOTHING
        return (_EVENT | self.chain | (self.own - {field})) - hidden | self.variables.keys()

    @property
    def stale_variables(self) -> Names:
        """Return the variables that an action before may have changed, which this one does not see."""
        stale = (self.unchained - self.chain) & _SCOPES
        return frozenset(name for name in self.variables if name.partition(".")[0] in stale)


_Way = tuple[str, Names]
"""The outcome of an action, and the results that are there then."""
_MOST_WAYS = 100


@dataclass(frozen=True, slots=True)
class _Ways:
    """The ways on which a chain comes to its next action; none before its first one. `given`: the results that one of
    its actions may have returned.
    """

    ways: frozenset[_Way] = frozenset()
    given: Names = _NOTHING

    def _released(self, action: Action) -> Iterator[Names]:
        """Yield what is there on each way on which the action runs."""
        if not self.ways:
            yield _NOTHING
        yield from (there for outcome, there in self.ways if outcome in (action.chain or ()))

    def missing(self, action: Action) -> Names:
        """Return the results that are not there on one of the ways on which the action runs."""
        return _NOTHING.union(*(self.given - there for there in self._released(action)))

    def behind(self, action: Action, kind: ActionType | None, results: Names) -> "_Ways":
        """Return the ways to the action after this one. An else with `chain_drop: completed` is meant to end the chain:
        that it may fail itself is not counted.
        """
        found = {(State.DROP, there) for outcome, there in self.ways if outcome not in (action.chain or ())}
        outcomes = {*(kind.outcomes if kind else OUTCOMES), *((State.DROP,) if "when" in action.fields else ())}
        for there in () if State.COMPLETED in action.chain_drop else self._released(action):
            ways = {(one, there | results if one == State.COMPLETED else there) for one in outcomes}
            found |= {way for way in ways if way[0] not in action.chain_drop}
        if len(found) > _MOST_WAYS:
            found = {(one, frozenset.intersection(*(there for o, there in found if o == one))) for one, _ in found}
        return _Ways(frozenset(found), self.given | results)


class Visible:
    """The names that actions see. `types`: the action types by name."""

    def __init__(self, bot: Bot, types: Mapping[str, ActionType]) -> None:
        self._bot = bot
        self._types = types
        self._brought: dict[str, Names] = dict.fromkeys(bot.scenarios, _NOTHING)
        self._chained: dict[str, Names] = dict.fromkeys(bot.scenarios, _NOTHING)
        self._left: dict[str, Names] = dict.fromkeys(bot.scenarios, _NOTHING)
        self._follow_splices()

    def seen(self, scenario: Scenario) -> list[VisibleNames]:
        """Return what each action of a scenario sees."""
        return [
            VisibleNames(self._own(action), chain, before, perhaps, self._bot.declared)
            for (action, chain, before), perhaps in zip(self._walk(scenario), self._perhaps(scenario), strict=True)
        ]

    def _own(self, action: Action) -> Names:
        section = self._bot.settings.get(action.type)
        return _with_seconds({*action.fields, *(section if isinstance(section, Mapping) else ())})

    def _walk(self, scenario: Scenario) -> Iterator[tuple[Action, Names, Names]]:
        """Yield the actions with the names that the chain gives, and those that it would give with a `chain`. Without
        one an action sees only what the `scenario` action saw that has brought it into the run.
        """
        brought, before = self._brought[scenario.name], self._chained[scenario.name]
        named: dict[str, Names] = {}
        for action in scenario.actions:
            before = named.get(action.after, before)
            names = brought if action.chain is None else before
            yield action, names, before
            goes_on = before if action.type in SPLICING else names  # what is spliced in follows the action before
            before = _joined(goes_on, self._given_by(action, scenario))
            if action.step:
                named[action.step] = before
        self._left[scenario.name] = before

    def _perhaps(self, scenario: Scenario) -> Iterator[Names]:
        """Yield of each action the results before it that are missing after some outcomes after which it runs. What
        scenarios that are spliced in return, and what callers bring, counts as there.
        """
        brought = self._brought[scenario.name]
        ways, named = _Ways(), dict[str, _Ways]()
        for action in scenario.actions:
            ways = named.get(action.after, ways)
            ways = _Ways() if action.chain is None else ways
            yield ways.missing(action) - brought
            ways = ways.behind(action, self._types.get(action.type), self._only_completed(action))
            named[action.step] = ways

    def _only_completed(self, action: Action) -> Names:
        """Return the results that an action returns only if it completes."""
        kind = self._types.get(action.type)
        if kind is None or kind.other_fields:
            return _NOTHING
        scopes = _SCOPES if self._bot.declared else _NOTHING
        failing = {*FAILURE, *kind.with_failure, *kind.refused(_REFUSAL).returned.results}
        return frozenset(kind.returns) - failing - scopes

    def _given_by(self, action: Action, scenario: Scenario) -> Names:
        """Return what an action adds to the chain."""
        kind = self._types.get(action.type)
        if kind is None:
            return frozenset({ANYTHING})
        own = _NOTHING
        if kind.other_fields or action.placeholder:
            own = _with_seconds({*action.fields} - {"rules"})
        missing = {name for name, field in kind.returns_with.items() if field not in self._own(action)}
        returned = frozenset(name for name in kind.returns if name.isidentifier()) - missing
        return own | returned | {*FAILURE} | self._left_by(action, scenario)

    def returned_in(self, scenario: Scenario) -> Names:
        """Return what the actions of a scenario return, and of those that it splices in."""
        found, waiting, known = _NOTHING, [scenario], {scenario.name}
        while waiting:
            one = waiting.pop()
            for action in one.actions:
                found |= self._given_by(action, one)
                handlers = [self._bot.scenarios[name] for name in action.handlers]
                more = [target for target in (*self._targets(action, one), *handlers) if target.name not in known]
                known |= {target.name for target in more}
                waiting += more
        return found

    def _left_by(self, action: Action, scenario: Scenario) -> Names:
        """Return what the scenarios leave that an action splices in; nothing of those that run side by side (C-34)."""
        if action.type not in SPLICING or is_parallel(action):
            return _NOTHING
        if any("{" in name for name in spliced_names(action)):
            return frozenset({ANYTHING})
        return _NOTHING.union(*(self._left[target.name] for target in self._targets(action, scenario)))

    def _follow_splices(self) -> None:
        """Hands the names on into spliced scenarios and back, until nothing changes."""
        callers = self._callers()
        waiting = deque(self._bot.scenarios.values())
        while waiting:
            scenario = waiting.popleft()
            before = self._left[scenario.name]
            for action, names, chained in self._walk(scenario):
                waiting += self._bring(scenario, action, names, chained)
            if self._left[scenario.name] != before:
                waiting += callers.get(scenario.name, ())

    def _bring(self, scenario: Scenario, action: Action, names: Names, chained: Names) -> list[Scenario]:
        """Return the spliced scenarios that see more than before. Their first action follows the one before the
        splice."""
        variables = _with_seconds({*action.fields}) if action.placeholder else _NOTHING
        variables |= _parameters(action)
        found = []
        targets = [(target, names | variables, chained | variables) for target in self._targets(action, scenario)]
        given = names | self._given_by(action, scenario)
        targets += [(self._bot.scenarios[name], given, given) for name in action.handlers]
        for target, bringing, chaining in targets:
            grown = _joined(self._brought[target.name], bringing)
            grown_chained = _joined(self._chained[target.name], chaining)
            if (grown, grown_chained) != (self._brought[target.name], self._chained[target.name]):
                self._brought[target.name], self._chained[target.name] = grown, grown_chained
                found.append(target)
        return found

    def _targets(self, action: Action, scenario: Scenario) -> Iterator[Scenario]:
        """Emit the scenarios that an action splices in; all, if a placeholder says which."""
        for name in spliced_names(action):
            if "{" in name:
                yield from self._bot.scenarios.values()
            elif target := self._bot.find(name, scenario):
                yield target

    def _callers(self) -> dict[str, list[Scenario]]:
        callers: dict[str, list[Scenario]] = {}
        for scenario in self._bot.scenarios.values():
            for action in scenario.actions:
                for target in self._targets(action, scenario):
                    callers.setdefault(target.name, []).append(scenario)
        return callers


def _parameters(action: Action) -> Names:
    """Return the names that an action gives to the scenarios that it splices in."""
    given = action.fields.get("with")
    named = frozenset(map(str, given)) if isinstance(given, Mapping) and action.type in SPLICING else _NOTHING
    if action.type != "for_each":
        return named
    return named | {str(action.fields.get("as") or ITEM), "number"}


def _joined(names: Names, more: Names) -> Names:
    return names if more <= names else names | more


def _with_seconds(fields: set[str]) -> Names:
    """Return the fields that are values, and those in seconds that the durations among them give."""
    values = fields - CONTROL_FIELDS
    return frozenset(values | {f"{name}{SECONDS}" for name in values & {*NAMES}})


class CheckedStep(Struct, frozen=True):
    """One action of a scenario."""

    scenario: Scenario
    action: Action
    node: MapNode
    seen: VisibleNames


def conditions_of(step: CheckedStep) -> list[Node]:
    """Return the field `when` of an action, and those of the cases of a `branch`."""
    cases = step.node.get("cases") if step.action.type == "branch" else None
    listed = cases.items if isinstance(cases, ListNode) else ()
    conditions = [step.node.get("when"), *(one.get("when") for one in listed if isinstance(one, MapNode))]
    return [one for one in conditions if one is not None]
