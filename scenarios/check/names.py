"""Checks that what placeholders and the validator's rules name can be there.

A slip of a known name is an error, and so is a name that the action would see if it had a `chain`. Data other unknown
name is a warning: braces may be meant as they are written.
"""

from collections.abc import Mapping

from scenarios.bot.data import Data
from scenarios.bot.event_fields import FIELDS
from scenarios.bot.nodes import ListNode, MapNode, Node, Scalar
from scenarios.bot.suggestion import did_you_mean, slip_of
from scenarios.check.step import CheckedStep, conditions_of
from scenarios.check.texts import placed_texts, reader_of
from scenarios.check.variables import UNKNOWN, full_name, is_variable, unknown_variable
from scenarios.check.visible import Names, VisibleNames
from scenarios.loader.problem import Problems
from scenarios.loader.reading import Reader
from scenarios.placeholders.fields import names_in, starts_in
from scenarios.placeholders.mentions import Mention, mentions
from scenarios.schema import ActionType
from scenarios.schema.conditions import fields_of
from scenarios.words import placed, sentence


def check_names(step: CheckedStep, kind: ActionType, settings: Mapping[str, Data], problems: Problems) -> None:
    """Check the names in texts. `settings`: those of the bot. Nothing is reported where an action before may have
    returned any name.
    """
    reader, seen = Reader(step.action.place.file, problems), step.seen
    of_texts = reader_of(step, kind, settings, problems)
    if not seen.is_known:
        return
    for field, text in placed_texts(step, kind, settings):
        for mention in mentions(str(text.value)):
            check_mention(of_texts, text, mention, seen, field)
    for key in fields_with_rules(step.node.get("rules")) if kind.name == "validator" else ():
        if not starts_in(key.text, known := seen.names()):
            report(reader, key, key.text, seen, known, ("UNKNOWN_RULE_FIELD", "rules"))
    for key in fields_of_conditions(step):
        if not starts_in(key.text, known := seen.names()):
            report(reader, key, key.text, seen, known, ("UNKNOWN_RULE_FIELD", "when"))


def check_mention(reader: Reader, text: Scalar, mention: Mention, seen: VisibleNames, field: str) -> None:
    known = seen.names(field)
    if full_name(mention.path) in seen.stale_variables:
        message = sentence("without_chain_action_sees", source=mention.source)
        reader.warning(text, "STALE_VARIABLE", message)
    if is_perhaps(mention, seen, field):
        message = sentence("result_only_of_completed", source=mention.source, name=mention.source.strip("{}"))
        reader.warning(text, "RESULT_MAY_BE_MISSING", message)
    if mention.is_doubled and starts_in(mention.path, FIELDS):
        message = sentence("double_braces", source=mention.source, path=mention.path, single=f"{{{mention.path}}}")
        reader.warning(text, "DOUBLE_BRACES", message)
    elif not starts_in(mention.path, known):
        is_slip = slip_of(names_in(mention.path)[0], tuple(sorted(known)))
        if not mention.is_optional or is_slip or starts_in(mention.path, seen.unchained):
            report(reader, text, mention.path, seen, known, ("UNKNOWN_PLACEHOLDER", mention.source))


def is_perhaps(mention: Mention, seen: VisibleNames, field: str) -> bool:
    """Return whether a result may be missing, so that people would read the placeholder as it is written."""
    there = FIELDS.keys() | (seen.own - {field})
    return not mention.is_optional and starts_in(mention.path, seen.perhaps) and not starts_in(mention.path, there)


def report(reader: Reader, node: Scalar, path: str, seen: VisibleNames, known: Names, what: tuple[str, str]) -> None:
    """Report a path that starts in no known name. `what`: the code, and what has the name."""
    (code, source), name = what, names_in(path)[0]
    names = tuple(sorted(known))
    if is_variable(path):
        reader.error(node, UNKNOWN, placed(source, unknown_variable(full_name(path), seen.variables)))
        return
    if starts_in(path, seen.unchained):
        chain = "failed" if name == "error" else "completed"
        message = sentence("only_action_chain_sees", source=source, chain=chain)
        reader.error(node, code, message)
    elif slip_of(name, names):
        reader.error(node, code, did_you_mean(sentence("no_field", source=source, name=name), name, names))
    else:
        unknown = did_you_mean(sentence("neither_event_nor_action", source=source, name=name), name, names)
        reader.warning(node, code, unknown)


def fields_of_conditions(step: CheckedStep) -> list[Scalar]:
    """Return the fields that the conditions of an action are about."""
    return [key for one in conditions_of(step) for key in fields_of(one)]


def fields_with_rules(rules: Node | None) -> list[Scalar]:
    """Return the fields that rules are about; `is_member` is about the person instead."""
    return [key for key, listed in rules.pairs if not asks_for_member(listed)] if isinstance(rules, MapNode) else []


def asks_for_member(rules: Node) -> bool:
    listed = rules.items if isinstance(rules, ListNode) else (rules,)
    names = [rule.get("rule") for rule in listed if isinstance(rule, MapNode)]
    return any(isinstance(name, Scalar) and name.text == "is_member" for name in names)
