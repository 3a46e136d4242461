"""The rules of the validator."""

from typing import Any

import pytest

from scenarios.schema.rules import ValidationResult, validate

EMPTY: list[Any] = [None, "", "  ", [], {}]


def outcome(rules: Any, **values: Any) -> str:
    return str(verdict(rules, **values).state)


def verdict(rules: Any, **values: Any) -> ValidationResult:
    return validate(rules, values, lambda rule: rule.get("value") == "member")


def holds(rule: str, wanted: Any, value: Any) -> bool:
    return outcome({"x": [{"rule": rule, "value": wanted}]}, x=value) == "completed"


@pytest.mark.parametrize(
    ("rule", "wanted", "good", "bad"),
    [
        ("equals", 5, [5, "5"], [50, "", None, "05"]),
        ("not_equals", "a", ["b", "A", None], ["a"]),
        ("not_empty", None, ["a", 0, False, [1]], EMPTY),
        ("empty", None, EMPTY, ["a", 0, False, [1]]),
        ("contains", "Каф", ["В кафЕ", ["каф", "b"]], ["КА", None, ["кафе"]]),
        ("starts_with", "Да", ["да, конечно", "ДА"], ["нет, да", None]),
        ("regex", r"^\+7\d{10}$", ["+79991112233"], ["89991112233", "+7999111223", None]),
        ("length_min", 3, ["abc", [1, 2, 3], 1000], ["ab", None, [1]]),
        ("length_max", "3", ["abc", None, [1]], ["abcd", [1, 2, 3, 4]]),
        ("more_than", 10, [11, "10.5", 1e9], [10, "9", None, "many", "2026-01-01"]),
        ("at_least", "10", [10, "10.0"], [9.99, ""]),
        ("less_than", "2026-12-01", ["30.11.2026", "2026-11-30T23:59:00+03:00"], ["2026-12-01", "01.12.2026 0:01", 5]),
        ("at_most", 0, [0, -1], [0.1]),
        ("between", [1, 10], [1, "10", 5.5], [0, 11, None]),
        ("between", "01.12.2026, 31.12.2026", ["2026-12-24"], ["2027-01-01"]),
        ("between", [1], [], [1]),
        ("in_list", ["a", 1], ["a", "1", 1], ["A", "", None]),
        ("in_list", "a, b", ["b"], ["c", "a, b"]),
        ("not_in_list", ["a", 1], ["b", None], ["a", "1"]),
        ("is_member", "member", ["anything"], []),
        ("is_member", "stranger", [], ["anything"]),
    ],
)
def test_a_rule_holds_for_good_values_and_not_for_bad_ones(
    rule: str, wanted: Any, good: list[Any], bad: list[Any]
) -> None:
    assert [value for value in good if not holds(rule, wanted, value)] == []
    assert [value for value in bad if holds(rule, wanted, value)] == []


def test_all_rules_of_all_fields_must_hold() -> None:
    rules = {"a": [{"rule": "not_empty"}, {"rule": "length_max", "value": 3}], "b.c": [{"rule": "equals", "value": 1}]}
    assert outcome(rules, a="abc", b={"c": 1}) == "completed"
    assert outcome(rules, a="abcd", b={"c": 1}) == "failed"
    assert outcome(rules, a="abc", b={"c": 2}) == "failed"


@pytest.mark.parametrize("rules", [{}, {"x": []}, {"x": None}])
def test_without_rules_the_validator_completes(rules: Any) -> None:
    assert outcome(rules) == "completed"


def test_the_error_names_the_field_and_the_rule() -> None:
    assert str(verdict({"phone": [{"rule": "not_empty"}]}).error) == "phone: not_empty does not hold"


@pytest.mark.parametrize(
    ("on_error", "expected"),
    [(None, "failed"), ("fail", "failed"), ("drop", "drop"), ("skip", "completed"), ("pass", "failed")],
)
def test_on_error_decides_what_a_rule_that_does_not_hold_does(on_error: str | None, expected: str) -> None:
    """The second rule does not hold either: `skip` leaves it out, `pass` goes on to it."""
    rules = {"x": [{"rule": "not_empty", "on_error": on_error}, {"rule": "length_min", "value": 1}]}
    assert outcome(rules, x="") == expected


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"rule": "nonsense"}, "there is no such rule"),
        ({"rule": "regex", "value": "("}, "broken"),
        ({"rule": "length_min", "value": "many"}, "'many' is not a whole number"),
        ("text", "there is no such rule"),
    ],
)
def test_a_rule_that_is_wrong_fails_with_its_reason(rule: Any, words: str) -> None:
    failed = verdict({"x": [rule]}, x="a")
    assert (str(failed.state), words in str(failed.error)) == ("failed", True)


def test_a_pattern_that_backtracks_fails_within_its_time_limit() -> None:
    assert outcome({"x": [{"rule": "regex", "value": "(a|aa|a?)+$"}]}, x="a" * 60 + "!") == "failed"
