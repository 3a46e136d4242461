"""Conditions: the field `when` of every action, and the cases of `branch` (C-94). Pure.

    when:
      price: {rule: at_least, value: 1000}      a rule of the validator, or a list of rules that must all hold
      any:                                      at least one of these conditions
        - {role: {rule: equals, value: teacher}}
        - {not: {city: {rule: in_list, value: [Kazan, Tver]}}}

All entries of a condition must hold. `any`, `all` and `not` are no names of fields.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated

from scenarios.bot.data import MISSING, Data, ListNode, MapNode, Node, Scalar, describe, is_empty
from scenarios.placeholders.values import as_list, find
from scenarios.schema.conversion import anything
from scenarios.schema.rules import RULE_ENTRIES, RULES, Rule, complaint, rule_complaints
from scenarios.schema.types import Complaint, Type
from scenarios.words import Text, placed, sentence, together

IS_MEMBER = "is_member"
"""The one rule of the validator that asks a provider."""


def unmet(condition: Data, values: Mapping[str, Data]) -> Text:
    """Return why a condition does not hold; "" if it does, or there is none. `values`: what the action sees."""
    for name, wanted in condition.items() if isinstance(condition, Mapping) else ():
        if reason := _GROUPS.get(str(name), _of_field(str(name)))(wanted, values):
            return reason
    return ""


def _of_field(name: str) -> Callable[[Data, Mapping[str, Data]], Text]:
    def reason(rules: Data, values: Mapping[str, Data]) -> Text:
        found = find(values, name)
        value = None if found is MISSING else found
        complaints = (complaint(rule, value, _cannot_ask) for rule in as_list(rules))
        return next((placed(name, one) for one in complaints if one), "")

    return reason


def _cannot_ask(_: Rule) -> bool:
    return False


def _unmet_all(conditions: Data, values: Mapping[str, Data]) -> Text:
    return next((reason for one in as_list(conditions) if (reason := unmet(one, values))), "")


def _unmet_any(conditions: Data, values: Mapping[str, Data]) -> Text:
    reasons = [unmet(one, values) for one in as_list(conditions)]
    return "" if "" in reasons else sentence("none_of", text=together(reasons))


def _unmet_not(condition: Data, values: Mapping[str, Data]) -> Text:
    return "" if unmet(condition, values) else sentence("what_not_names_holds")


_GROUPS: Mapping[str, Callable[[Data, Mapping[str, Data]], Text]] = {
    "all": _unmet_all,
    "any": _unmet_any,
    "not": _unmet_not,
}


def chosen(cases: Data, values: Mapping[str, Data]) -> str:
    """Return the scenario of the first case whose condition holds; "" if there is none."""
    for case in as_list(cases):
        if isinstance(case, Mapping) and not unmet(case.get("when"), values):
            return str(case.get("scenario") or "")
    return ""


# what is wrong with a condition


def condition_complaints(node: Node) -> Iterator[Complaint]:
    if not isinstance(node, MapNode):
        yield node, sentence("condition_is_mapping", found=describe(node))
        return
    for key, wanted in node.pairs:
        if key.text == "not" and isinstance(wanted, ListNode):
            yield wanted, sentence("not_has_one_condition")
        check = condition_complaints if key.text in _GROUPS else _rule_complaints
        for one in _each(wanted):
            yield from check(one)


def fields_of(node: Node) -> Iterator[Scalar]:
    """Yield the names of the fields that a condition is about."""
    return (key for key, _ in rules_of(node))


def rules_of(node: Node) -> Iterator[tuple[Scalar, Node]]:
    """Yield the names of the fields that a condition is about, each with its rules."""
    for key, wanted in node.pairs if isinstance(node, MapNode) else ():
        if key.text not in _GROUPS:
            yield key, wanted
        else:
            for condition in _each(wanted):
                yield from rules_of(condition)


def _each(node: Node) -> Sequence[Node]:
    return node.items if isinstance(node, ListNode) else (node,)


def _rule_complaints(rule: Node) -> Iterator[Complaint]:
    yield from rule_complaints(rule)
    if isinstance(rule, MapNode):
        named = rule.get("rule")
        if isinstance(named, Scalar) and named.text == IS_MEMBER:
            yield named, sentence("condition_asks_no_provider")
        if (on_error := rule.get("on_error")) is not None:
            yield on_error, sentence("condition_holds_not")


_OF_CASE = ("when", "scenario")


def cases_complaints(node: Node) -> Iterator[Complaint]:
    if not isinstance(node, ListNode):
        yield node, sentence("must_list_when_scenario", found=describe(node))
        return
    for case in node.items:
        if not isinstance(case, MapNode):
            yield case, sentence("case_is_mapping", found=describe(case))
            continue
        for key, _ in case.pairs:
            if key.text not in _OF_CASE:
                yield key, sentence("case_has_no", name=key.text, words=", ".join(_OF_CASE))
        if is_empty(case.get("scenario")):
            yield case, sentence("case_names_no_scenario")
        if (when := case.get("when")) is not None:
            yield from condition_complaints(when)


_RULE: Data = {"type": "object", "properties": {"rule": {"enum": [one for one in RULES if one != IS_MEMBER]}}}
_CONDITION: dict[str, Data] = {
    "type": "object",
    "additionalProperties": {"anyOf": [_RULE, {"type": "array", "items": _RULE}]},
    "properties": {"any": {"type": "array"}, "all": {"type": "array"}, "not": {"type": "object"}},
}
_CASES = {
    "type": "array",
    "items": {"type": "object", "properties": {"when": _CONDITION}, "required": ["scenario"]},
}
CONDITION = Type("field → rules, with any, all and not", _CONDITION, condition_complaints)
CASES = Type("a list of {when, scenario}", _CASES, cases_complaints, needed=RULE_ENTRIES)
Cases = Annotated[Data, CASES, anything]
