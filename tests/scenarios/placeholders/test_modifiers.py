"""Each modifier does what row C-51 says."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from scenarios.placeholders import MODIFIERS, Scope, render, render_all

MOSCOW = timezone(timedelta(hours=3))

ARITHMETIC = [
    (1000, "+5", 1005),
    (1000, "-5", 995),
    (1000, "*0.9", 900),
    ("1000", "*0.9", 900),
    (19.99, "*100", 1999),
    (0.1, "+0.2", 0.3),
    (10, "/2", 5),
    (10, "/3", 10 / 3),
    (10, "%3", 1),
    (-7, "%3", 2),
    (7.5, "%2", 1.5),
    (" 12.50 ", "+ 0.5", 13),
    (5, "+-2", 3),
    (-1001234567890123, "+1", -1001234567890122),
]

LISTS = [
    (["a", "b"], "tags", "@a @b"),
    (["@a", "b", ""], "tags", "@a @b"),
    ("a", "tags", "@a"),
    ([], "tags", ""),
    (["x", 2], "list", "• x\n• 2"),
    ("x", "list", "• x"),
    (["a", "b"], "comma", "a, b"),
    ("a", "comma", "a"),
    ([1, 2, 3], "length", 3),
    ({"a": 1}, "length", 1),
    ({"a": 1, "b": 2}, "keys", ["a", "b"]),
    ([["a"]], "expand", [["a"]]),
    ([{"n": "9"}, {"n": "10"}, {"m": 1}, {"n": "b"}], "sort:n", [{"n": "9"}, {"n": "10"}, {"n": "b"}, {"m": 1}]),
    ([{"n": 9}, {"m": 1}, {"n": 10.5}], "sort:-n", [{"n": 10.5}, {"n": 9}, {"m": 1}]),
    ([1, 2, 3], "first:2", [1, 2]),
    ([{"a": "Anna", "b": 3}, {"a": "Bo"}], "columns:a, b", ["Anna, 3", "Bo, "]),
    ("абвг", "length", 4),
    (12345, "length", 5),
    (None, "length", 0),
]

TEXTS = [
    ("Иван петров", "upper", "ИВАН ПЕТРОВ"),
    ("Иван Петров", "lower", "иван петров"),
    ("иван ПЕТРОВ", "title", "Иван Петров"),
    ("иван ПЕТРОВ", "capitalize", "Иван петров"),
    ("иван", "case:upper", "ИВАН"),
    ("ИВАН", "case:lower", "иван"),
    ("иван петров", "case:title", "Иван Петров"),
    ("иван петров", "case: capitalize ", "Иван петров"),
    ("0123456789X", "truncate:10", "0123456..."),
    ("0123456789", "truncate:10", "0123456789"),
    ("0123456789", "truncate:3", "012"),
    ("0123456789", "truncate:0", ""),
    ("order 42 of 7", r"regex:\d+", "42"),
    ("order 42", r"regex:order (\d+)", "42"),
    ("order", r"regex:order( \d+)?", ""),
    ("order", r"regex:\d+", ""),
    ("ab abc abcd", "regex:[a-z]{4,}", "abcd"),
    ("нет", "regex:(да|нет)", "нет"),
]

FORMATS = [
    ("2024-12-25T15:30:00", "format:date", "25.12.2024"),
    ("2024-12-25T15:30:00", "format:time", "15:30"),
    ("2024-12-25T15:30:00", "format:datetime", "25.12.2024 15:30"),
    ("2024-12-25T15:30:00Z", "format:timestamp", 1735140600),
    ("2024-12-25T15:30:00", "format:timestamp", 1735140600),
    (1735140600, "format:datetime", "25.12.2024 15:30"),
    ("1735140600", "format:datetime", "25.12.2024 15:30"),
    (datetime(2024, 12, 25, 15, 30, tzinfo=UTC), "format:time", "15:30"),
    (date(2024, 12, 25), "format:datetime", "25.12.2024 00:00"),
    ("25.12.2024 15:30", "format:time", "15:30"),
    ("2024-12-25T15:30:45", "format:time_full", "15:30:45"),
    ("2024-12-25T15:30:45", "format:datetime_full", "25.12.2024 15:30:45"),
    ("25.12.2024 15:30", "format:pg_date", "2024-12-25"),
    ("25.12.2024 15:30", "format:pg_datetime", "2024-12-25 15:30:00"),
    (1000, "format:currency", "1000.00 ₽"),
    ("2.665", "format:currency", "2.67 ₽"),
    (25.5, "format:percent", "25.5%"),
    (25, "format:percent", "25.0%"),
    (1234.5678, "format:number", "1234.57"),
    (7, "format:number", "7.00"),
]

DATES = [
    ("2024-12-25", "shift:+1 day", "2024-12-26"),
    ("25.12.2024", "shift: -3 Months", "2024-09-25"),
    ("2024-01-31", "shift:+1 month", "2024-02-29"),
    ("2024-02-29", "shift:+1 y", "2025-02-28"),
    ("2024-12-25", "shift:+1 year 2 months", "2026-02-25"),
    ("2024-12-25", "shift:+1 w -1 d", "2024-12-31"),
    ("2024-12-25", "shift:+3 hours", "2024-12-25 03:00:00"),
    ("2024-12-25 15:30:00", "shift:-1 day 12 hours", "2024-12-24 03:30:00"),
    ("25.12.2024 15:30", "shift:+45 min 30 sec", "2024-12-25 16:15:30"),
    ("2026-02-09T16:02:36.609797+03:00", "shift:+1 day", "2026-02-10 16:02:36+03:00"),
    (1735140600, "shift:+1 h", "2024-12-25 16:30:00+00:00"),
    ("2024-12-25", "shift:'+1 day'", "2024-12-26"),
    ("2024-12-25 15:30:45", "to_second", "2024-12-25 15:30:45"),
    ("2024-12-25 15:30:45", "to_minute", "2024-12-25 15:30:00"),
    ("2024-12-25 15:30:45", "to_hour", "2024-12-25 15:00:00"),
    ("2024-12-25 15:30:45", "to_date", "2024-12-25 00:00:00"),
    ("2024-12-25 15:30:45", "to_week", "2024-12-23 00:00:00"),
    ("2024-12-25 15:30:45", "to_month", "2024-12-01 00:00:00"),
    ("2024-12-25 15:30:45", "to_year", "2024-01-01 00:00:00"),
    ("2h 30m", "seconds", 9000),
    ("1d 2w", "seconds", 1296000),
    (90, "seconds", 90),
]

CONDITIONS = [
    ("active", "equals:active", True),
    (5, "equals:5", True),
    (True, "equals:true", True),
    ("Active", "equals:active", False),
    ("b", "in_list:a, b", True),
    ("c", "in_list:a,b", False),
    (2, "in_list:1,2", True),
    ("yes", "true", True),
    ("false", "true", False),
    (0, "true", False),
    ([], "true", False),
    ("x", "exists", True),
    (0, "exists", True),
    ("", "exists", False),
    (None, "exists", False),
    (None, "is_null", True),
    ("", "is_null", True),
    ("Null", "is_null", True),
    ([], "is_null", False),
    (False, "is_null", False),
    (True, "value:Да", "Да"),
    (False, "value:Да", ""),
    ("", "fallback:Гость", "Гость"),
    (None, "fallback:Гость", "Гость"),
    (0, "fallback:Гость", 0),
    (False, "fallback:Гость", False),
    ("<b>", "raw", "<b>"),
    (["a"], "code", ["a"]),
]


def rendered(value: Any, modifier: str, **more: Any) -> Any:
    result = render(f"{{x|{modifier}}}", Scope({"x": value}, **more))
    assert result.warnings == ()
    return result.value


@pytest.mark.parametrize(("value", "modifier", "result"), [*ARITHMETIC, *LISTS, *TEXTS, *FORMATS, *DATES, *CONDITIONS])
def test_a_modifier_returns_what_the_table_says(value: Any, modifier: str, result: Any) -> None:
    found = rendered(value, modifier)
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize(
    ("modifier", "result"),
    [
        ("fallback:Гость", "Гость"), ("exists", False), ("is_null", True), ("equals:a", False), ("in_list:a", False),
        ("true", False), ("value:Да", ""), ("length", 0), ("upper|fallback:Гость", "Гость"), ("+1|fallback:0", "0"),
    ],
)  # fmt: skip
def test_conditions_and_replacements_also_apply_to_a_missing_field(modifier: str, result: Any) -> None:
    assert render(f"{{x|{modifier}}}", Scope({})).value == result


def test_conditions_are_followed_by_texts_for_both_cases() -> None:
    text = "{role|equals:admin|value:Да|fallback:Нет}"
    assert [render(text, Scope({"role": role})).value for role in ("admin", "user", None)] == ["Да", "Нет", "Нет"]


def test_every_modifier_has_a_case_here_and_an_explanation() -> None:
    cases = [modifier for _, modifier, _ in (*ARITHMETIC, *LISTS, *TEXTS, *FORMATS, *DATES, *CONDITIONS)]
    names = {modifier[0] if modifier[0] in "+-*/%" else modifier.split(":")[0] for modifier in cases}
    assert names == set(MODIFIERS)
    assert [modifier.name for modifier in MODIFIERS.values() if not modifier.explanation] == []


def test_dates_are_shown_in_the_time_zone_of_the_scope() -> None:
    assert rendered("2024-12-25T15:30:00Z", "format:time", zone=MOSCOW) == "18:30"
    assert rendered(1735140600, "format:time", zone=MOSCOW) == "18:30"
    assert rendered("2024-12-25T18:30:00", "format:time", zone=MOSCOW) == "18:30"
    assert rendered("2024-12-25T18:30:00", "format:timestamp", zone=MOSCOW) == 1735140600


def test_hours_pass_when_the_clock_is_put_forward_and_days_do_not_change_the_time_of_day() -> None:
    berlin = ZoneInfo("Europe/Berlin")  # 31 March 2024, 2:00: one hour is left out
    assert rendered("2024-03-30T12:00:00+01:00", "shift:+1 day", zone=berlin) == "2024-03-31 12:00:00+02:00"
    assert rendered("2024-03-30T12:00:00+01:00", "shift:+24 hours", zone=berlin) == "2024-03-31 13:00:00+02:00"


@pytest.mark.parametrize(
    ("value", "modifier"),
    [
        (10, "/0"), (10, "%0"), ("ten", "+1"), (True, "+1"), ([1], "*2"), (10, "+x"), (10, "+"),
        (1e39, "*100"),
        (float("inf"), "+1"), ("1" * 50, "+1"), (1e300, "format:currency"), (-(10**50), "format:number"),
        ("text", "truncate:x"), ("text", "truncate:-1"),
        ("text", "truncate:1.5"),
        ("text", "format:date"), ("text", "format:currency"), (5, "format:weekday"), (10**30, "format:date"),
        ("text", "case:middle"), ("text", "regex:("), ("text", "regex:" + "a" * 1001), ("text", "regex:"),
        ("2024-12-25", "shift:1 day"), ("2024-12-25", "shift:+1 eon"), ("2024-12-25", "shift:+1 day or so"),
        ("2024-12-25", "shift:+"), ("text", "shift:+1 day"), ("9999-12-31", "shift:+1 day"), ("text", "to_week"),
        ("2024-12-25", "shift:+999999 years"),
        ("text", "seconds"), ("text", "keys"),
        ("text", "nonsense"), ("text", "nonsense:5"), ("text", ""), ("text", "+{missing}"),
    ],
)  # fmt: skip
def test_an_error_leaves_the_value_as_it_is_and_is_reported(value: Any, modifier: str) -> None:
    result = render(f"{{y}}{{x|{modifier}}}", Scope({"x": value, "y": ""}))
    assert result.value == render("{y}{x}", Scope({"x": value, "y": ""})).value
    (warning,) = result.warnings
    assert (warning.placeholder, warning.offset) == (f"{{x|{modifier}}}", 3)
    assert warning.code == ("MODIFIER_UNKNOWN" if modifier in ("", "nonsense", "nonsense:5") else "MODIFIER_FAILED")


def test_the_modifiers_after_an_error_and_the_other_placeholders_still_work() -> None:
    result = render("{x|+1|upper}, {x|nonsense|title}, {x}", Scope({"x": "ten"}))
    assert result.value == "TEN, Ten, ten"
    assert [warning.code for warning in result.warnings] == ["MODIFIER_FAILED", "MODIFIER_UNKNOWN"]


@pytest.mark.parametrize(
    ("rows", "result"),
    [
        ([[{"A": "a"}], ["B", "C"]], [[{"A": "a"}], ["B", "C"], {"Back": "menu"}]),
        ([], [{"Back": "menu"}]),
        ([1, 2], [[1, 2], {"Back": "menu"}]),
        ("A", ["A", {"Back": "menu"}]),
    ],
)
def test_the_rows_of_a_value_stand_in_a_list_instead_of_it(rows: Any, result: Any) -> None:
    assert render_all(["{x.rows|expand}", {"Back": "menu"}], Scope({"x": {"rows": rows}})).value == result
