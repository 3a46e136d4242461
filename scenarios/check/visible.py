"""Finds the fields that each action of a bot can read: the fields of the event, the values of the chain before it, its
own (C-31, C-32).

All ways into a scenario count together, as one of them may bring a name. A name that is not here is never there.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from scenarios.bot import Action, Bot, Scenario
from scenarios.bot.durations import NAMES, SECONDS
from scenarios.bot.event_fields import FIELDS
from scenarios.bot.variables import SCOPES, Variable
from scenarios.engine.graph import SPLICING, is_parallel, spliced_names
from scenarios.engine.splicing import ITEM
from scenarios.placeholders.attributes import CONTROL_FIELDS
from scenarios.schema import ActionType

Names = frozenset[str]

ANYTHING = "*"
"""Stands among the names if an action before is not known, so that any name may be there."""

_EVENT: Names = frozenset(FIELDS)
_NOTHING: Names = frozenset()
_SCOPES: Names = frozenset(SCOPES)


@dataclass(frozen=True, slots=True)
class VisibleNames:
    """The names that one action can read. `own`: its attributes, `chain`: what the chain before it gives, `unchained`:
    what it would see besides if it had a `chain`. `variables`: those that the bot declares.
    """

    own: Names
    chain: Names
    unchained: Names
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
            VisibleNames(self._own(action), chain, before, self._bot.declared)
            for action, chain, before in self._walk(scenario)
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
        return own | returned | {"error"} | self._left_by(action, scenario)

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
