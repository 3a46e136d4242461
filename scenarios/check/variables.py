"""Checks the variables that actions name: they must be in variables.yaml, and a written value must fit (C-93)."""

from collections.abc import Iterator

from scenarios.bot import Bot
from scenarios.bot.nodes import ListNode, MapNode, Node, Scalar, plain
from scenarios.bot.suggestion import did_you_mean
from scenarios.bot.variables import SCOPES, split_name
from scenarios.check.step import CheckedStep, conditions_of
from scenarios.check.texts import texts_in
from scenarios.loader.problem import Problems
from scenarios.loader.reading import Reader
from scenarios.placeholders.fields import names_in
from scenarios.schema import ActionType
from scenarios.schema.conditions import rules_of
from scenarios.schema.types import has_placeholder
from scenarios.schema.variables import VARIABLE, VARIABLES, Declared, VariableFault, change_of
from scenarios.words import Text, placed, sentence

UNKNOWN = "UNKNOWN_VARIABLE"

_COMPARING = ("equals", "not_equals", "in_list", "not_in_list")


def check_variables(step: CheckedStep, kind: ActionType, bot: Bot, problems: Problems) -> None:
    """Report names that variables.yaml does not have, and values that do not fit."""
    reader = Reader(step.action.place.file, problems)
    for name, value in named_by(step, kind):
        if name.text not in bot.declared:
            if split_name(name.text) is not None:  # otherwise the field's type is wrong, which is reported
                reader.error(name, UNKNOWN, unknown_variable(name.text, bot.declared))
        elif value is not None and _is_known(value):
            try:
                change_of(name.text, plain(value), bot.declared, None)
            except VariableFault as fault:
                reader.error(value, "WRONG_TYPE", placed(name.text, fault.said))


def check_compared(step: CheckedStep, bot: Bot, problems: Problems) -> None:
    """Report conditions that compare a choice with what it never is."""
    reader = Reader(step.action.place.file, problems)
    for key, rules in (pair for condition in conditions_of(step) for pair in rules_of(condition)):
        for value, said in no_options(key.text, rules, bot.declared):
            reader.warning(value, "NOT_AN_OPTION", placed(key.text, said))


def no_options(name: str, rules: Node, declared: Declared) -> Iterator[tuple[Scalar, Text]]:
    """Yield the values with which a condition compares a choice, and which it never has."""
    options = declared[name].options if name in declared else ()
    for rule in rules.items if isinstance(rules, ListNode) else (rules,):
        kind, wanted = (rule.get("rule"), rule.get("value")) if isinstance(rule, MapNode) else (None, None)
        if not options or not isinstance(kind, Scalar) or kind.text not in _COMPARING:
            continue
        for value in wanted.items if isinstance(wanted, ListNode) else (wanted,):
            if isinstance(value, Scalar) and value.text not in ("", *options) and not has_placeholder(value):
                yield value, sentence("value_is_none_of", value=value.text, words=", ".join(options))


def _is_known(value: Node) -> bool:
    """Return whether a value can be judged before the bot runs: any element fits a list."""
    if isinstance(value, MapNode) and value.get("append") is not None:
        times = value.get("times")
        return times is None or not list(texts_in(times))
    return not list(texts_in(value))


def named_by(step: CheckedStep, kind: ActionType) -> Iterator[tuple[Scalar, Node | None]]:
    """Yield the names of variables in the fields of an action, each with the value that it gets if one is written."""
    for field in kind.fields:
        node = step.node.get(field.name)
        if field.type is VARIABLES and isinstance(node, MapNode):
            is_path = field.name == "save"  # its values are places in a response
            yield from ((key, None if is_path else value) for key, value in node.pairs)
        elif field.type is VARIABLE and isinstance(node, Scalar) and not has_placeholder(node):
            yield node, None


def unknown_variable(name: str, declared: Declared) -> Text:
    """Return the complaint about a name that looks like a variable."""
    return did_you_mean(sentence("variables_yaml_has_no", name=name), name, declared)


def is_variable(path: str) -> bool:
    """Return whether a path looks like a variable: `person.age`."""
    names = names_in(path)
    return len(names) > 1 and names[0] in SCOPES


def full_name(path: str) -> str:
    """Return the name of the variable in which a path starts: `person.rooms` of `person.rooms.0`."""
    return ".".join(names_in(path)[:2])
