"""Compares actions and settings with the declarations of the action types, and the names that an action uses with the
scenarios, roles, permissions and states of the bot.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from scenarios.actions import Actions
from scenarios.bot import SECTIONS, Action, Bot, Place
from scenarios.bot.button_data import LONGEST_DATA, jump_data, scenario_of
from scenarios.bot.data import Data, ListNode, MapNode, Node, Scalar, is_empty
from scenarios.bot.model import FOREIGN
from scenarios.bot.suggestion import did_you_mean, slip_of
from scenarios.check.visible import CheckedStep
from scenarios.engine.graph import SPLICING
from scenarios.engine.triggers import TEACHER_SECTION
from scenarios.loader.bot_files import COMMANDS_SECTION, ROLES_SECTION
from scenarios.loader.files import BOT, GROUP_TRIGGERS, SETTINGS, TRIGGERS
from scenarios.loader.reading import Problems, Reader
from scenarios.loader.trigger_files import find_scenario
from scenarios.plugins import installed_plugins
from scenarios.schema import ActionType
from scenarios.schema.attributes import Field
from scenarios.schema.declaration import COMMON_FIELDS, ENABLED
from scenarios.schema.types import DURATION, has_placeholder
from scenarios.words import Sentence, placed, sentence

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
        self._knows_triggers = not problems.has_error_in(TRIGGERS, GROUP_TRIGGERS)
        self._knows_roles = not problems.has_error_in(BOT, SETTINGS)

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


_DEFAULTS = tuple(one for one in COMMON_FIELDS if one.name not in ("step", "after", "on_failure", "otherwise"))
"""The common fields for which settings.yaml may have a default."""

_NOT_REPLACED = ("required_role", "required_permission", "group_admin", "step")
"""The common fields that are read before placeholders are replaced, and whose types allow braces."""

_NEEDED = {"ask": {"field": "form", "row": "form"}, "order": {"until": "answer"}}
"""Action → the fields that do nothing without another one."""

_BAD_PATTERN = "pattern_cannot_used"


def check_action(step: CheckedStep, actions: Actions, problems: Problems) -> None:
    reader = Reader(step.action.place.file, problems)
    kind = actions.types.get(step.action.type)
    if kind is None:
        report_unknown_action(reader, step, actions)
        return
    for key, value in step.node.pairs:
        if field := kind.field(key.text):
            check_value(reader, field, value)
        else:
            check_unknown_field(reader, key, step.action, kind)
    if kind.one_of and all(is_empty(step.node.get(name)) for name in kind.one_of):
        reader.error(step.node, "MISSING_FIELD", _needs(kind))
    for name, other in _NEEDED.get(kind.name, {}).items():
        if other not in step.seen.own and (node := step.node.get(name)) is not None:
            reader.error(node, "NEEDS_FIELD", sentence("only_with_field", name=name, other=other))


def _needs(kind: ActionType) -> Sentence:
    if len(kind.one_of) == 2:
        return sentence("needs_one_of_two", action=kind.name, first=kind.one_of[0], second=kind.one_of[1])
    return sentence("needs_field", action=kind.name, words=", ".join(kind.one_of))


def report_unknown_action(reader: Reader, step: CheckedStep, actions: Actions) -> None:
    name = step.action.type
    node = step.node.get("type") or step.node
    if name in actions.broken:
        reader.error(node, "UNKNOWN_ACTION", sentence("action_installed_package", name=name, text=actions.broken[name]))
    else:
        message = did_you_mean(sentence("no_action", name=name), name, actions.types)
        reader.error(node, "UNKNOWN_ACTION", message)


def check_value(reader: Reader, field: Field, value: Node) -> None:
    for node, complaint in field.type.check(value):
        is_pattern = isinstance(complaint, Sentence) and complaint.code == _BAD_PATTERN
        code = "BAD_PATTERN" if is_pattern else "WRONG_TYPE"
        reader.error(node, code, placed(field.name, complaint))
    if field.name in _NOT_REPLACED:
        for one in reader.one_or_many(value):
            if has_placeholder(one):
                reader.error(one, "WRONG_TYPE", sentence("not_replaced", name=field.name))


def check_unknown_field(reader: Reader, key: Scalar, action: Action, kind: ActionType) -> None:
    """Check a field that the type does not declare. It may be a variable for placeholders, in this action or later
    (C-58). A slip of a known name is an error all the same, unless the type expects other fields.
    """
    if kind.other_fields:
        return
    known = kind.field_names()
    is_variable = action.placeholder is True or is_used(key.text, action)
    if slip_of(key.text, known) and not is_used(key.text, action):
        report = reader.warning if is_variable else reader.error
    elif is_variable:
        return
    else:
        report = reader.warning
    report(
        key, "UNKNOWN_FIELD", did_you_mean(sentence("has_no_field", action=kind.name, name=key.text), key.text, known)
    )


def is_used(name: str, action: Action) -> bool:
    """Return whether a placeholder of this action has that name, or a name that another placeholder makes."""
    return re.search(rf"\{{\s*({re.escape(name)}\b|[^{{}}|]*\{{)", repr(_values(action))) is not None


def _values(action: Action) -> list[Data]:
    """Return the fields one by one: the braces of mappings around them are none of a placeholder."""
    return [list(strings_in(value)) for value in action.fields.values()]


def strings_in(value: Data) -> Iterator[str]:
    """Yield all texts of a value, and the names in its mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for one in [*value, *value.values()] if isinstance(value, Mapping) else value:
            yield from strings_in(one)


def check_settings(reader: Reader, root: Node | None, actions: Actions) -> None:
    """Check the sections of settings.yaml: the action types, whose defaults they change, and plugins (C-81)."""
    plugins = [plugin.name for plugin in installed_plugins()[0]]
    known = (*actions.types, *plugins, *FOREIGN, COMMANDS_SECTION, ROLES_SECTION, TEACHER_SECTION)
    for key, node in root.pairs if isinstance(root, MapNode) else ():
        if key.text in actions.types:
            check_section(reader, key.text, (*actions.types[key.text].fields, *_DEFAULTS), node)
        elif key.text == TEACHER_SECTION:
            check_section(reader, key.text, (), node)
        elif setting := FOREIGN.get(key.text):
            check_foreign(reader, node, Field(setting, DURATION, ""), key.text)
        elif key.text not in known:
            message = did_you_mean(sentence("settings_yaml_has_no", name=key.text), key.text, known)
            reader.warning(key, "UNKNOWN_SETTING", message)


def check_foreign(reader: Reader, section: Node, setting: Field, name: str) -> None:
    """Check a section of Coreness, of which one setting is used."""
    for key, value in reader.pairs(section, name):
        if key.text == setting.name:
            check_value(reader, setting, value)
        else:
            reader.warning(key, "UNKNOWN_SETTING", sentence("section_only_used", name=name, name_2=setting.name))


def check_section(reader: Reader, name: str, fields: Sequence[Field], section: Node) -> None:
    known = {one.name: one for one in (ENABLED, *fields)}
    for key, value in reader.pairs(section, name):
        if field := known.get(key.text):
            check_value(reader, field, value)
        else:
            reader.unknown(key, tuple(known), "UNKNOWN_SETTING", sentence("setting", name=name))
