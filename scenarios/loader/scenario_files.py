"""Reads scenario files: a mapping name → `{actions: […]}`.

Scenarios that are written for Coreness 1.x, with `trigger` and `step`, are reported: each would be one without actions.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec.structs import replace

from core.model.text.characters import nfc
from scenarios.bot import ANY, NAMED, OUTCOMES, Action, Bot, Place, Scenario
from scenarios.bot.button_data import scenario_of
from scenarios.bot.data import Data, ListNode, MapNode, Node, Scalar, is_empty, plain_mapping, read_flag
from scenarios.bot.suggestion import did_you_mean, slip_of
from scenarios.loader.reading import Problems, Reader
from scenarios.words import sentence

HANDLERS = ("on_failure", "otherwise")
"""The fields of an action that hold actions."""

_CHAIN_WORDS = (*OUTCOMES, "any", "true", "false")


class ScenarioFiles:
    """The scenarios of all files. `nodes`: full name → the nodes of its actions, one for each of its actions. `later`:
    the places of scenarios of Coreness 1.x.
    """

    def __init__(self, problems: Problems) -> None:
        self.scenarios: dict[str, Scenario] = {}
        self.nodes: dict[str, tuple[MapNode, ...]] = {}
        self.later: list[Place] = []
        self._problems = problems

    def add(self, file: str, root: Node | None) -> None:
        """Add the scenarios of one file, whose root node is given."""
        reader = Reader(file, self._problems)
        prefix = ".".join(PurePosixPath(nfc(file)).relative_to("scenarios").with_suffix("").parts)
        for key, node in reader.pairs(root, sentence("file_scenarios")):
            self._add_scenario(reader, f"{prefix}.{key.text}", key, node)

    def short_names(self) -> dict[str, tuple[str, ...]]:
        names: dict[str, tuple[str, ...]] = {}
        for scenario in self.scenarios.values():
            if scenario.is_part:
                continue
            names[scenario.short] = (*names.get(scenario.short, ()), scenario.name)
        return names

    def _add_scenario(self, reader: Reader, name: str, key: Scalar, node: Node) -> None:
        if name in self.scenarios:
            place = self.scenarios[name].place
            reader.error(
                key, "DUPLICATE_SCENARIO", sentence("already_line_2", name=name, file=place.file, line=place.line)
            )
            return
        if is_later(node):
            self.later.append(reader.place(key))
            return
        self._add_actions(reader, Scenario(name, key.text, (), reader.place(key)), action_nodes(reader, key, node))

    def _add_actions(self, reader: Reader, scenario: Scenario, written: tuple[Node, ...]) -> None:
        """Add a scenario with these actions, and behind it those that stand in the actions."""
        self.scenarios[scenario.name] = scenario
        nodes = [one for one in written if is_action(reader, one) and isinstance(one, MapNode)]
        self.nodes[scenario.name] = tuple(map(without_handlers, nodes))
        actions = [self._with_handlers(reader, scenario, number, node) for number, node in enumerate(nodes, 1)]
        check_steps(reader, nodes)
        self.scenarios[scenario.name] = replace(scenario, actions=tuple(actions))

    def _with_handlers(self, reader: Reader, scenario: Scenario, number: int, node: MapNode) -> Action:
        """Return an action whose `on_failure` and `otherwise` are scenarios of their own (C-104)."""
        names = {}
        for field, actions in handlers_of(node):
            if is_empty(actions):
                continue
            part = f":{number}.{field}"
            place = Place(reader.file, actions.line, actions.column)
            names[field] = scenario.name + part
            inner = Scenario(scenario.name + part, scenario.short + part, (), place, is_part=True)
            self._add_actions(reader, inner, reader.items(actions, field))
        return replace(read_action(reader, without_handlers(node)), **names)


def handlers_of(node: MapNode) -> list[tuple[str, Node]]:
    """Return the fields of an action that hold actions. `otherwise` of a `branch` names a scenario."""
    kind = node.get("type")
    is_branch = isinstance(kind, Scalar) and kind.text == "branch"
    names = HANDLERS[:1] if is_branch else HANDLERS
    return [(key.text, value) for key, value in node.pairs if key.text in names]


def without_handlers(node: MapNode) -> MapNode:
    names = {name for name, _ in handlers_of(node)}
    return replace(node, pairs=tuple(pair for pair in node.pairs if pair[0].text not in names))


def check_steps(reader: Reader, nodes: Sequence[MapNode]) -> None:
    """Report names of steps that two actions of a scenario have, and `after` that names no earlier one."""
    known: list[str] = []
    for node in nodes:
        after, step = node.get("after"), node.get("step")
        if isinstance(after, Scalar) and not is_empty(after) and after.text not in known:
            message = did_you_mean(sentence("no_earlier_step", name=after.text), after.text, known)
            reader.error(after, "UNKNOWN_STEP", message)
        if isinstance(step, Scalar) and not is_empty(step):
            if step.text in known:
                reader.error(step, "DUPLICATE_STEP", sentence("earlier_step_has_name"))
            known.append(step.text)


def with_goals(scenario: Scenario, bot: Bot) -> Scenario:
    """Return the scenario with full names as the goals of its buttons: a press has no file in which a bare name would
    be looked for first (C-104). What is no name of a scenario stays as it is written.
    """

    def goal(written: Data) -> Data:
        if not isinstance(written, str):
            return written
        named = written if bot.find(written, scenario) else scenario_of(written)
        found = bot.find(named, scenario)
        return found.name + written[len(named) :] if found else written

    def row(buttons: Data) -> Data:
        return (
            [
                {text: goal(one) for text, one in button.items()} if isinstance(button, dict) else button
                for button in buttons
            ]
            if isinstance(buttons, list)
            else buttons
        )

    def action(one: Action) -> Action:
        rows = one.fields.get("inline")
        return replace(one, fields={**one.fields, "inline": list(map(row, rows))}) if isinstance(rows, list) else one

    return replace(scenario, actions=tuple(map(action, scenario.actions)))


def action_nodes(reader: Reader, key: Scalar, node: Node) -> tuple[Node, ...]:
    actions: Node | None = None
    for name, value in reader.pairs(node, sentence("scenario", name=key.text)):
        if name.text == "actions":
            actions = value
        elif not is_empty(value):
            reader.unknown(name, ("actions",), "UNKNOWN_FIELD", sentence("field_scenario"))
    return reader.items(actions, "actions")


def is_action(reader: Reader, node: Node) -> bool:
    """Return whether an action can be made of it; reports what hinders."""
    if not isinstance(node, MapNode):
        reader.wrong(node, sentence("action"), sentence("mapping_type"))
        return False
    if reader.text(node.get("type"), "type") is None:
        report_missing_type(reader, node)
        return False
    return True


def report_missing_type(reader: Reader, node: MapNode) -> None:
    """Report an action without a type, and the name that is a slip of `type`."""
    meant = next((key for key, _ in node.pairs if slip_of(key.text, ("type",)) and key.text != "type"), None)
    if meant:
        message = did_you_mean(sentence("no_type_but", name=meant.text), meant.text, ("type",))
        reader.error(meant, "MISSING_TYPE", message)
    else:
        reader.error(node, "MISSING_TYPE", sentence("no_type_write"))


def read_action(reader: Reader, node: MapNode) -> Action:
    fields = plain_mapping(node)
    kind = node.get("type")
    place = Place(reader.file, node.line, node.column)
    chain, after = read_outcomes(reader, node.get("chain"), "chain"), reader.text(node.get("after"), "after") or ""
    return Action(
        type=kind.text if isinstance(kind, Scalar) else "",
        fields={name: value for name, value in fields.items() if name != "type"},
        place=place,
        chain=NAMED["completed"] if chain is None and after else chain,
        chain_drop=read_outcomes(reader, node.get("chain_drop"), "chain_drop") or frozenset(),
        placeholder=read_placeholder(reader, node),
        step=reader.text(node.get("step"), "step") or "",
        after=after,
    )


def read_outcomes(reader: Reader, node: Node | None, what: str) -> frozenset[str] | None:
    """Return the outcomes that `chain` or `chain_drop` names; None if it is missing, empty or false."""
    if node is None or is_empty(node) or (isinstance(node, Scalar) and read_flag(node.text) is False):
        return None
    named: frozenset[str] = frozenset()
    for item in reader.one_or_many(node):
        named |= read_outcome(reader, item, what)
    return named


def read_outcome(reader: Reader, node: Node, what: str) -> frozenset[str]:
    word = node.text.strip().lower() if isinstance(node, Scalar) else ""
    if word in NAMED:
        return NAMED[word]
    if word == "any" or read_flag(word):
        return ANY
    if isinstance(node, Scalar) and node.value is not None:
        known = ", ".join(OUTCOMES)
        message = sentence("list_them_any_true", what=what, words=known, found=node.text)
        reader.error(node, "UNKNOWN_OUTCOME", did_you_mean(message, node.text, _CHAIN_WORDS))
    else:
        reader.wrong(node, what, sentence("outcome_list_outcomes_any"))
    return frozenset()


def read_placeholder(reader: Reader, node: MapNode) -> bool | None:
    found = [reader.flag(node.get(name), name) for name in ("placeholder", "placeholders")]
    return next((flag for flag in found if flag is not None), None)


_MARKS = (("step", "action"), ("trigger", "event_type"))
"""A field of a scenario, and what each entry of its list has."""


def is_later(scenario: Node) -> bool:
    """Return whether a scenario is one of Coreness 1.x."""
    if not isinstance(scenario, MapNode) or scenario.get("actions") is not None:
        return False
    lists = [(scenario.get(field), mark) for field, mark in _MARKS]
    return any(
        isinstance(entry, MapNode) and entry.get(mark) is not None
        for listed, mark in lists
        for entry in (listed.items if isinstance(listed, ListNode) else ())
    )


def report_later(places: list[Place], problems: Problems) -> None:
    """Report one error for all scenarios of Coreness 1.x; what their files would have had is not missed elsewhere."""
    if not places:
        return
    problems.unread |= {place.file for place in places}
    code = "scenario_dialect_coreness_x" if len(places) == 1 else "scenarios_dialect_coreness_x"
    message = sentence(code, count=len(places))
    problems.error(places[0], "LATER_DIALECT", message)
