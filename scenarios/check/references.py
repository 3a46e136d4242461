"""Names that an action uses: scenarios, roles, permissions, states."""

from collections.abc import Collection, Iterator

from scenarios.bot import SECTIONS, Bot, Place
from scenarios.bot.button_data import LONGEST_DATA, jump_data, normalise, scenario_of
from scenarios.bot.nodes import ListNode, MapNode, Node, Scalar, is_empty
from scenarios.bot.suggestion import did_you_mean
from scenarios.check.visible import CheckedStep
from scenarios.engine.graph import SPLICING
from scenarios.loader.files import BOT, GROUP_TRIGGERS, SETTINGS, TRIGGERS
from scenarios.loader.reading import Problems, Reader
from scenarios.loader.trigger_files import find_scenario
from scenarios.schema.types import has_placeholder
from scenarios.words import sentence

Splices = dict[str, list[tuple[str, Place]]]
"""Full name of a scenario → those that it splices in, each with the place where it does."""


class References:
    """Checks the names of all actions, one after the other. `splices`: what was found until then."""

    def __init__(self, bot: Bot, problems: Problems) -> None:
        self.splices: Splices = {}
        self._bot = bot
        self._problems = problems
        self._permissions = {permission for role in bot.roles.values() for permission in role.permissions}
        triggers = (bot.triggers, bot.group_triggers)
        by_state = [file.section(name).get("state", ()) for file in triggers for name in SECTIONS]
        self._states = {trigger.key for kind in by_state for trigger in kind}
        self._buttons = {normalise(trigger.key) for file in triggers for trigger in file.callback["exact"]}
        self._answers_any_button = any(file.callback.get("state") or file.callback.get("*") for file in triggers)
        self._knows_triggers = not problems.has_error_in(TRIGGERS, GROUP_TRIGGERS)
        self._knows_roles = not problems.has_error_in(BOT, SETTINGS)
        self._parts_of_buttons = {normalise(trigger.key) for file in triggers for trigger in file.callback["contains"]}

    def check(self, step: CheckedStep) -> None:
        reader = Reader(step.action.place.file, self._problems)
        if self._knows_roles:
            roles, permissions = (step.node.get(name) for name in ("required_role", "required_permission"))
            warn_unknown(reader, roles, self._bot.roles, "UNKNOWN_ROLE", "no_role")
            warn_unknown(reader, permissions, self._permissions, "UNKNOWN_PERMISSION", "no_permission")
        for name in step.action.handlers:
            self.splices.setdefault(step.scenario.name, []).append((name, step.action.place))
        if step.action.type in SPLICING:
            self._check_splices(reader, step)
        if step.action.type == "send":
            self._check_buttons(reader, step)
        if step.action.type == "user" and self._knows_triggers:
            state = step.node.get("user_state")
            warn_unknown(reader, state, self._states, "UNKNOWN_STATE", "no_trigger_state")

    def _check_splices(self, reader: Reader, step: CheckedStep) -> None:
        for node in names_in(spliced(reader, step)):
            if scenario := find_scenario(reader, node, node.text, self._bot, step.scenario):
                place = reader.place(node)
                self.splices.setdefault(step.scenario.name, []).append((scenario.name, place))

    def _check_buttons(self, reader: Reader, step: CheckedStep) -> None:
        """Check the targets of buttons: `{text: name}` jumps to a scenario; an address is no name (C-08, C-09)."""
        keyboard = step.node.get("inline")
        for target in button_targets(keyboard):
            if not isinstance(target, Scalar) or is_empty(target) or is_address(target.text):
                continue
            is_whole = self._bot.find(target.text, step.scenario) is not None
            name = target.text if is_whole else scenario_of(target.text)
            if "{" in name:
                continue
            found = find_scenario(reader, target, name, self._bot, step.scenario)
            data = jump_data(found.name + target.text[len(name) :]) if found else ""
            if len(data.encode()) > LONGEST_DATA:
                reader.error(target, "BUTTON_TOO_LONG", sentence("button_value_too_long", most=LONGEST_DATA))
        for button in names_in(text_buttons(keyboard)) if self._knows_triggers else ():
            if not self._is_answered(normalise(button.text)):
                message = sentence("no_trigger_callback_answers", name=button.text)
                reader.warning(button, "UNANSWERED_BUTTON", message)

    def _is_answered(self, button: str) -> bool:
        return (
            self._answers_any_button
            or button in self._buttons
            or any(part in button for part in self._parts_of_buttons)
        )


def spliced(reader: Reader, step: CheckedStep) -> Iterator[Node]:
    """Yield the names of the scenarios that an action splices in."""
    if step.action.type == "scenario":
        for field in ("name", "value"):
            yield from reader.one_or_many(step.node.get(field))
        return
    if step.action.type == "for_each":
        yield from reader.one_or_many(step.node.get("scenario"))
        return
    cases = step.node.get("cases")
    targets = (
        [case.get("scenario") for case in cases.items if isinstance(case, MapNode)]
        if isinstance(cases, ListNode)
        else []
    )
    yield from (node for node in (*targets, step.node.get("otherwise")) if node is not None)


def warn_unknown(reader: Reader, node: Node | None, known: Collection[str], code: str, missing: str) -> None:
    """Report the names that are not known. `missing`: the code of the sentence about one."""
    for name in names_in(reader.one_or_many(node)):
        if name.text not in known:
            reader.warning(name, code, did_you_mean(sentence(missing, name=name.text), name.text, known))


def names_in(nodes: Iterator[Node] | tuple[Node, ...]) -> Iterator[Scalar]:
    """Yield the nodes that are names: single values without placeholders."""
    for node in nodes:
        if isinstance(node, Scalar) and not is_empty(node) and not has_placeholder(node):
            yield node


def button_targets(keyboard: Node | None) -> Iterator[Node]:
    """Emit where the buttons of a keyboard lead that are written as a mapping."""
    for row in keyboard.items if isinstance(keyboard, ListNode) else ():
        for button in row.items if isinstance(row, ListNode) else ():
            if isinstance(button, MapNode):
                yield from (target for _, target in button.pairs)


def text_buttons(keyboard: Node | None) -> Iterator[Node]:
    """Emit the buttons of a keyboard that are only a text."""
    for row in keyboard.items if isinstance(keyboard, ListNode) else ():
        yield from row.items if isinstance(row, ListNode) else ()


def is_address(text: str) -> bool:
    return "://" in text or text.startswith(("mailto:", "tel:"))
