"""Hostile and endless input ends in bounded time, with a warning."""

import pytest

from scenarios.bot.patterns import PatternRefused, compile_pattern, size_of
from scenarios.placeholders import Scope, render
from tests.support.work import calls_of

HOSTILE = [("(?:a|aa)+$", "a" * 60 + "!"), ("(a|a)*$", "a" * 60 + "!"), (r"^(\w|\w\w)+$", "я" * 60 + "?")]


@pytest.mark.parametrize(("pattern", "text"), HOSTILE)
def test_a_pattern_that_backtracks_exponentially_ends_with_a_warning(pattern: str, text: str) -> None:
    result = render(f"{{x|regex:{pattern}}}", Scope({"x": text}))
    assert result.value == text
    assert "longer than 50 ms" in str(result.warnings[0].message)


@pytest.mark.parametrize(
    "source", ["(?:(?:a{100}){100}){100}", "((((a{30}){30}){30}){30}){30}", "a{999999999999}", "a" * 1001]
)
def test_a_pattern_that_is_large_with_its_repetitions_is_refused_before_it_is_compiled(source: str) -> None:
    with pytest.raises(PatternRefused, match=r"longer|larger"):
        compile_pattern(source)


@pytest.mark.parametrize(
    ("source", "size"),
    [
        ("abc", 3),
        ("a{3}", 3),
        ("(ab){3}", 9),
        ("((ab){2}c){3}", 24),
        (r"\d{4}-\d{2}", 7),
        ("[a{5}]{2}", 2),
        (r"\({3}", 3),
        (")", 1),
    ],
)
def test_the_size_of_a_pattern_counts_its_repetitions(source: str, size: int) -> None:
    assert size_of(source) == size


def test_the_depth_cap_leaves_the_placeholder_as_it_stands_with_a_warning() -> None:
    scope = Scope({"a": "{b}", "b": "{c}", "c": "text"}, max_depth=2)
    result = render("x {a} {b}", scope)
    assert result.value == "x {c} text"
    assert [(one.code, one.placeholder, one.offset) for one in result.warnings] == [("TOO_DEEP", "{c}", 2)]


@pytest.mark.parametrize("value", ["{a}", "-{a}", "{b}"])
def test_a_value_that_names_itself_ends_with_a_warning(value: str) -> None:
    result = render("{a}", Scope({"a": value, "b": "{a}"}))
    assert "{a}" in str(result.value) or "{b}" in str(result.value)
    assert result.warnings[0].code == "TOO_DEEP"


@pytest.mark.parametrize("depth", [100, 10_000])
@pytest.mark.parametrize(
    ("before", "after"), [("{", "}"), ("{x|fallback:", "}"), ("{x|regex:", "}"), ("{", ""), ("{x|regex:[", "")]
)
def test_placeholders_nested_very_deep_end_in_bounded_time(depth: int, before: str, after: str) -> None:
    text = before * depth + "a" + after * depth
    result = render(text, Scope({"a": 1, "x": ""}))
    assert isinstance(result.value, str)


def test_placeholders_nested_100_deep_stay_from_the_cap_on() -> None:
    text = "{x|fallback:" * 100 + "{a}" + "}" * 100
    result = render(text, Scope({"a": 1}))
    assert result.value == text
    assert [one.code for one in result.warnings] == ["TOO_DEEP"]


def test_values_that_multiply_are_bounded() -> None:
    values = {"a": "{a}" * 1000}
    result = render("{a}", Scope(values))
    assert 0 < len(result.warnings) <= 100
    assert len(str(result.value)) < 1_000_000


def test_more_placeholders_than_are_processed_stay_as_written_with_a_warning() -> None:
    result = render("{a}" * 10_001, Scope({"a": 1}))
    assert result.value == "1" * 10_000 + "{a}"
    assert [one.code for one in result.warnings] == ["TOO_MANY"]


def test_a_text_is_parsed_once() -> None:
    scope, text = Scope({"username": "ivan", "price": 1000}), "Добрый день, {username|fallback:Гость}: {price|*0.9} ₽"
    first = calls_of(lambda: render(text, scope))
    assert calls_of(lambda: render(text, scope)) < first / 2
