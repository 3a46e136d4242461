"""Reads scenario files: a mapping name → `{actions: […]}`."""

from pathlib import PurePosixPath
from typing import Any

from msgspec.structs import replace

from core.model.text.characters import nfc
from scenarios.bot import ANY, NAMED, OUTCOMES, Action, Bot, Place, Scenario
from scenarios.bot.nodes import MapNode, Node, Scalar, is_empty, plain, read_flag
from scenarios.bot.suggestion import did_you_mean, slip_of
from scenarios.loader.later_dialect import is_later
from scenarios.loader.problem import Problems
from scenarios.loader.reading import Reader
from scenarios.words import sentence

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
        nodes = [one for one in action_nodes(reader, key, node) if is_action(reader, one)]
        self.nodes[name] = tuple(one for one in nodes if isinstance(one, MapNode))
        actions = tuple(read_action(reader, one) for one in self.nodes[name])
        self.scenarios[name] = Scenario(name, key.text, actions, reader.place(key))


def with_goals(scenario: Scenario, bot: Bot) -> Scenario:
    """Return the scenario with full names as the goals of its buttons: a press has no file in which a bare name would
    be looked for first (C-104). What is no name of a scenario stays as it is written.
    """

    def goal(written: Any) -> Any:
        found = bot.find(written, scenario) if isinstance(written, str) else None
        return found.name if found else written

    def row(buttons: Any) -> Any:
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
    fields = plain(node)
    kind = node.get("type")
    place = Place(reader.file, node.line, node.column)
    return Action(
        type=kind.text if isinstance(kind, Scalar) else "",
        fields={name: value for name, value in fields.items() if name != "type"},
        place=place,
        chain=read_outcomes(reader, node.get("chain"), "chain"),
        chain_drop=read_outcomes(reader, node.get("chain_drop"), "chain_drop") or frozenset(),
        placeholder=read_placeholder(reader, node),
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
