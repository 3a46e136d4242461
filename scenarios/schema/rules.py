"""The rules of the action `validator`: a mapping field → list of `{rule, value, on_error}`, how it is written, and
whether the values of an action hold (C-59 to C-62). Pure, apart from the membership question, which is passed in.

Rules are read field by field, in the author's order; the first one that does not hold decides, by its `on_error`:
`fail` (without one) and `drop` end the validation, `pass` goes on as if it held, `skip` leaves out the other rules of
the field. No rules: completed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from core.model.json_form import JsonSchema
from core.model.text.characters import nfc
from scenarios.bot.data import MISSING, Data, ListNode, MapNode, Node, Scalar, describe, is_empty, plain
from scenarios.bot.patterns import PatternRefused, PatternTimeout, compile_pattern
from scenarios.engine import Ending, State, Values
from scenarios.placeholders.attributes import Prepared
from scenarios.placeholders.values import as_list, as_moment, as_number, find
from scenarios.schema import types
from scenarios.schema.types import Complaint, Type
from scenarios.words import SentenceError, Text, placed, sentence

WITHOUT_VALUE = ("not_empty", "empty")
COMPARING = ("equals", "not_equals", "contains", "starts_with")
_OF_SIZE = ("more_than", "at_least", "less_than", "at_most")
RULES = (
    *WITHOUT_VALUE,
    *COMPARING,
    "regex",
    "length_min",
    "length_max",
    *_OF_SIZE,
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
    elif rule.text in _OF_SIZE and isinstance(value, Scalar) and not types.has_placeholder(value):
        if as_number(value.text) is None and as_moment(value.text, None) is None:
            yield value, sentence("must_be", wanted=sentence("number_or_date"), found=describe(value))
    elif rule.text == "between" and not _has_placeholders(value) and _is_never_between(plain(value)):
        yield value, sentence("needs_two_limits_example")


def _has_placeholders(node: Node) -> bool:
    return any(types.has_placeholder(one) for one in (node.items if isinstance(node, ListNode) else (node,)))


def _is_never_between(wanted: Data) -> bool:
    """Return whether no value is between these limits: the lower one comes first."""
    try:
        return not _is_between(_limits(wanted)[0], wanted)
    except RuleUnusable:
        return True


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


Rule = Mapping[str, Data]
Rules = Mapping[str, Data]
"""Field → its rules, in the author's order."""
IsMember = Callable[[Rule], bool]
"""Answers a rule `is_member` (C-62)."""


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """completed, failed or drop; `error` names the field and the rule that decided."""

    state: State
    error: Text = ""


class RuleUnusable(SentenceError):
    """The rule itself is wrong: it does not hold, for this reason."""


def ending(prepared: Prepared, rules: Rules, is_member: IsMember) -> Ending:
    """Return what becomes of the action: the verdict, and its other fields as results."""
    verdict = validate(rules, prepared.seen, is_member)
    fields = {name: value for name, value in prepared.own.items() if name != "rules"}
    return Ending(
        verdict.state, Values(fields, from_person=prepared.from_person & fields.keys()), verdict.error, code="NOT_VALID"
    )


def validate(rules: Rules, values: Mapping[str, Data], is_member: IsMember) -> ValidationResult:
    """Return the outcome of all rules. `values`: the flat mapping that the action sees; fields may be dotted."""
    for field, listed in rules.items():
        verdict = _validate_field(str(field), as_list(listed), values, is_member)
        if verdict.state is not State.COMPLETED:
            return verdict
    return ValidationResult(State.COMPLETED)


def _validate_field(field: str, rules: list[Data], values: Mapping[str, Data], is_member: IsMember) -> ValidationResult:
    found = find(values, field)
    value = None if found is MISSING else found
    for rule in rules:
        if not (error := complaint(rule, value, is_member)):
            continue
        on_error = rule.get("on_error") or "fail" if isinstance(rule, Mapping) else "fail"
        if on_error == "skip":
            break
        if on_error != "pass":
            return ValidationResult(State.DROP if on_error == "drop" else State.FAILED, placed(field, error))
    return ValidationResult(State.COMPLETED)


def complaint(rule: Data, value: Data, is_member: IsMember) -> Text:
    """Return why a rule does not hold; empty if it does."""
    name = str(rule.get("rule")) if isinstance(rule, Mapping) else str(rule)
    try:
        if name == "is_member" and isinstance(rule, Mapping):
            holds = is_member(rule)
        else:
            holds = _check(name)(value, _wanted(rule))
    except (RuleUnusable, PatternRefused, PatternTimeout) as error:
        return placed(name, error.said)
    return "" if holds else sentence("does_not_hold", name=name)


def _check(name: str) -> Callable[[Data, Data], bool]:
    if name not in CHECKS:
        raise RuleUnusable(sentence("no_such_rule"))
    return CHECKS[name]


def _wanted(rule: Data) -> Data:
    return rule.get("value") if isinstance(rule, Mapping) else None


def is_missing(value: Data) -> bool:
    """Return whether a value is missing, null, a text without visible characters, or a list or mapping without
    elements. Zero is a value.
    """
    return value is None or (isinstance(value, str) and not value.strip()) or value in ([], {}, ())


def _equals(value: Data, wanted: Data) -> bool:
    return _text(value) == _text(wanted)


def _contains(value: Data, wanted: Data) -> bool:
    if isinstance(value, list | tuple):
        return _folded(wanted) in [_folded(one) for one in value]
    return _folded(wanted) in _folded(value)


def _matches(value: Data, wanted: Data) -> bool:
    return compile_pattern(_text(wanted)).search(_text(value)) is not None


def _in_list(value: Data, wanted: Data) -> bool:
    listed = wanted.split(",") if isinstance(wanted, str) else as_list(wanted)
    return _text(value).strip() in [_text(one).strip() for one in listed]


def _length(value: Data) -> int:
    return len(value) if isinstance(value, list | tuple | Mapping) else len(_text(value))


def _compared(value: Data, wanted: Data) -> int:
    """Return -1, 0 or 1: the value is less than, equal to or more than the wanted one. Both are numbers, or dates.
    Raises RuleUnusable.
    """
    number, limit = as_number(value), as_number(wanted)
    if number is not None and limit is not None:
        return (number > limit) - (number < limit)
    moment, bound = as_moment(value, None), as_moment(wanted, None)
    if moment is None or bound is None or number is not None or limit is not None:
        raise RuleUnusable(sentence("not_both_numbers_both", value=_text(value), wanted=_text(wanted)))
    # A moment without a zone is meant in the zone of the other one.
    moment, bound = _in_zone(moment, bound.tzinfo), _in_zone(bound, moment.tzinfo)
    return (moment > bound) - (moment < bound)


def _in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def _is_between(value: Data, wanted: Data) -> bool:
    first, last = _limits(wanted)
    return _compared(value, first) >= 0 >= _compared(value, last)


def _limits(wanted: Data) -> Sequence[Data]:
    limits = wanted.split(",") if isinstance(wanted, str) else as_list(wanted)
    if len(limits) != 2:
        raise RuleUnusable(sentence("needs_two_limits_example"))
    return limits


def _limit(wanted: Data) -> int:
    try:
        return int(wanted if isinstance(wanted, str | int | float) else "")
    except ValueError:
        raise RuleUnusable(sentence("is_not", name=repr(wanted), text=sentence("whole_number"))) from None


CHECKS: Mapping[str, Callable[[Data, Data], bool]] = {
    "equals": _equals,
    "not_equals": lambda value, wanted: not _equals(value, wanted),
    "not_empty": lambda value, _: not is_missing(value),
    "empty": lambda value, _: is_missing(value),
    "contains": _contains,
    "starts_with": lambda value, wanted: _folded(value).startswith(_folded(wanted)),
    "regex": _matches,
    "length_min": lambda value, wanted: _length(value) >= _limit(wanted),
    "length_max": lambda value, wanted: _length(value) <= _limit(wanted),
    "more_than": lambda value, wanted: _compared(value, wanted) > 0,
    "at_least": lambda value, wanted: _compared(value, wanted) >= 0,
    "less_than": lambda value, wanted: _compared(value, wanted) < 0,
    "at_most": lambda value, wanted: _compared(value, wanted) <= 0,
    "between": _is_between,
    "in_list": _in_list,
    "not_in_list": lambda value, wanted: not _in_list(value, wanted),
}
"""Rule → whether it holds for a value and the rule's own value. `contains` and `starts_with` ignore case; those from
`more_than` to `between` compare numbers or dates.
"""


def _text(value: Data) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _folded(value: Data) -> str:
    return nfc(_text(value)).casefold()
