"""Compares actions and settings with the declarations of the action types."""

import re
from collections.abc import Iterator, Mapping, Sequence

from scenarios.actions import Actions
from scenarios.bot import Action
from scenarios.bot.data import Data
from scenarios.bot.model import FOREIGN
from scenarios.bot.nodes import MapNode, Node, Scalar, is_empty
from scenarios.bot.suggestion import did_you_mean, slip_of
from scenarios.check.visible import CheckedStep
from scenarios.engine.triggers import TEACHER_SECTION
from scenarios.loader.bot_files import COMMANDS_SECTION, ROLES_SECTION
from scenarios.loader.reading import Problems, Reader
from scenarios.plugins import installed_plugins
from scenarios.schema import ActionType
from scenarios.schema.attributes import Field
from scenarios.schema.declaration import COMMON_FIELDS, ENABLED
from scenarios.schema.types import DURATION, has_placeholder
from scenarios.words import Sentence, placed, sentence

_DEFAULTS = tuple(one for one in COMMON_FIELDS if one.name not in ("step", "after", "on_failure", "otherwise"))
"""The common fields for which settings.yaml may have a default."""

_NOT_REPLACED = ("required_role", "required_permission", "group_admin", "step")
"""The common fields that are read before placeholders are replaced, and whose types allow braces."""

_OF_A_FORM = ("field", "row")
"""The fields of a question that do nothing without `form`."""

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
    for name in _OF_A_FORM if kind.name == "ask" and "form" not in step.seen.own else ():
        if (node := step.node.get(name)) is not None:
            reader.error(node, "NEEDS_FIELD", sentence("only_with_field", name=name, other="form"))


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
    return [list(_texts(value)) for value in action.fields.values()]


def _texts(value: Data) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for one in [*value, *value.values()] if isinstance(value, Mapping) else value:
            yield from _texts(one)


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
