"""The type of the validator's `rules`: a mapping field → list of `{rule, value, on_error}` (C-59, C-61, C-62)."""

from collections.abc import Iterator

from core.model.json_form import JsonSchema
from scenarios.bot.nodes import ListNode, MapNode, Node, Scalar, describe, is_empty
from scenarios.bot.patterns import PatternRefused, compile_pattern
from scenarios.schema import types
from scenarios.schema.types import Complaint, Type
from scenarios.words import Text, sentence

WITHOUT_VALUE = ("not_empty", "empty")
COMPARING = ("equals", "not_equals", "contains", "starts_with")
RULES = (
    *WITHOUT_VALUE,
    *COMPARING,
    "regex",
    "length_min",
    "length_max",
    "more_than",
    "at_least",
    "less_than",
    "at_most",
    "between",
    "in_list",
    "not_in_list",
    "is_member",
)
_NAMES = ("rule", "value", "on_error", "mode", "chat", "target_user")
RULE_ENTRIES = ("value", "chat", "target_user")
"""Of a rule: what placeholders may not leave empty. Without a value each means something else: a comparison with
nothing holds for all who have nothing, `is_member` asks for the group and the person of the event.
"""
ON_ERROR = ("fail", "pass", "skip", "drop")
MODES = ("any", "all")
"""Of `is_member` with several chats (C-62)."""
_RULE, _ON_ERROR, _MODE = types.choice(*RULES), types.choice(*ON_ERROR), types.choice(*MODES)


def rules_complaints(node: Node) -> Iterator[Complaint]:
    if not isinstance(node, MapNode):
        yield node, sentence("must_mapping_from_fields", found=describe(node))
        return
    for _, rules in node.pairs:
        if isinstance(rules, ListNode | MapNode):
            for rule in rules.items if isinstance(rules, ListNode) else (rules,):
                yield from rule_complaints(rule)
        elif not is_empty(rules):
            yield rules, sentence("must_list_rules_example", found=describe(rules))


def rule_complaints(node: Node) -> Iterator[Complaint]:
    if not isinstance(node, MapNode):
        yield node, sentence("rule_is_mapping", found=describe(node))
        return
    rule, value, on_error = (node.get(name) for name in ("rule", "value", "on_error"))
    if rule is None or is_empty(rule):
        yield node, sentence("entry_names_no_rule")
        return
    for key, _ in node.pairs:
        if key.text not in _NAMES:
            yield key, sentence("rule_has_no", name=key.text, words=", ".join(_NAMES))
    yield from _RULE.check(rule)
    if on_error is not None:
        yield from _ON_ERROR.check(on_error)
    if (mode := node.get("mode")) is not None:
        yield from _MODE.check(mode)
    if isinstance(rule, Scalar):
        yield from value_complaints(rule, value)


def value_complaints(rule: Scalar, value: Node | None) -> Iterator[Complaint]:
    """Emit what is wrong with the value of a rule."""
    if rule.text in WITHOUT_VALUE or rule.text not in RULES or rule.text in ("equals", "not_equals", "is_member"):
        return  # a value that may be missing, or empty
    if value is None or is_empty(value):
        yield rule, sentence("rule_needs_value", name=rule.text)
    elif rule.text in ("length_min", "length_max"):
        yield from types.WHOLE.check(value)
    elif rule.text == "regex":
        yield from pattern_complaints(value)


def pattern_complaints(node: Node) -> Iterator[Complaint]:
    """Emit a pattern that does not compile. Braces are part of patterns, so a placeholder is only skipped if it
    fails."""
    if not isinstance(node, Scalar):
        yield node, sentence("pattern_text", found=describe(node))
    elif (complaint := pattern_problem(node.text)) and not types.has_placeholder(node):
        yield node, sentence("pattern_cannot_used", text=complaint)


def pattern_problem(pattern: str) -> Text | None:
    """Return why a regular expression cannot be used; None if it can."""
    try:
        compile_pattern(pattern)
    except PatternRefused as error:
        return error.said
    return None


_SCHEMA: JsonSchema = {
    "type": "object",
    "additionalProperties": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "rule": {"enum": list(RULES)},
                "on_error": {"enum": list(ON_ERROR)},
                "mode": {"enum": list(MODES)},
            },
            "required": ["rule"],
        },
    },
}
VALIDATOR_RULES = Type("field → list of {rule, value, on_error}", _SCHEMA, rules_complaints, needed=RULE_ENTRIES)


def rule_list_complaints(node: Node) -> Iterator[Complaint]:
    """Yield what is wrong with the rules of one value."""
    for rule in node.items if isinstance(node, ListNode) else (node,):
        yield from rule_complaints(rule)


RULE_LIST = Type("a list of {rule, value}", _SCHEMA["additionalProperties"], rule_list_complaints, needed=RULE_ENTRIES)
