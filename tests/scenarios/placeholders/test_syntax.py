"""How placeholders are written: nesting, paths, escapes, whole placeholders and what stays as written."""

from typing import Any

import pytest

from scenarios.bot.data import Data
from scenarios.placeholders import HTML, MARKDOWN_V2, Scope, problems, render, render_all
from scenarios.placeholders.parser import parse

EMAIL = r"{event_text|regex:[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}}"


def rendered(text: str, /, **values: Any) -> Any:
    return render(text, Scope(values)).value


def test_the_placeholders_of_the_specification_work() -> None:
    assert rendered("Ок, {username|fallback:Гость}") == "Ок, Гость"
    assert rendered("Ок, {username|fallback:Гость}", username="ivan") == "Ок, ivan"
    assert rendered("{price|*0.9}", price=1000) == 900
    assert rendered(EMAIL, event_text="пишите на a.b+c@mail.example.ru!") == "a.b+c@mail.example.ru"
    assert rendered(f"почта: {EMAIL}.", event_text="a@b.c") == "почта: ."


NESTED = {"lang": "ru", "greeting_ru": "Привет", "y": 5, "n": 3, "m": "upper", "p": r"\d+", "a": "b", "b_c": "lang"}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{greeting_{lang}}!", "Привет!"),
        ("{x|fallback:{y}}", 5),
        ("{x|fallback:{z|fallback:{y|+1}}}", 6),
        ("{x|fallback:нет {y} и {n}}", "нет 5 и 3"),
        ("{y|+{n}}", 8),
        ("{greeting_ru|truncate:{n}}", "При"),
        ("{greeting_ru|regex:^.{{n}}}", "При"),
        ("{greeting_ru|regex:^.{{n},4}}", "Прив"),
        ("{greeting_ru|{m}}", "ПРИВЕТ"),
        ("{greeting_ru|{m}|truncate:4}", "П..."),
        ("{q|regex:{p}}", "42"),
        ("{q|regex:(код|code) {p}|length}", 3),
        ("{y|equals:{y}|value:{greeting_{lang}}|fallback:{n}}", "Привет"),
        ("{lang|in_list:{langs}}", True),
        ("{{b_c}}", "ru"),
        ("{{{a}_c}}", "ru"),
        ("{welcome}", "Привет, 5!"),
    ],
)
def test_placeholders_stand_in_names_parameters_modifiers_and_values(text: str, result: Any) -> None:
    values = NESTED | {"q": "код 42", "langs": ["ru", "en"], "welcome": "{greeting_{lang}}, {y}!"}
    assert rendered(text, **values) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{'hello'|upper}", "HELLO"),
        ('{"it\'s"}', "it's"),
        (r"{'it\'s'}", "it's"),
        ("{ '100' |+50}", 150),
        ("{'100'}", "100"),
        ("{''|fallback:none}", "none"),
        ("{'Hi {n}'|upper}!", "HI IVAN!"),
        ("{'a|b'}", "a|b"),
        ("{x|fallback:'a|b}'}", "a|b}"),
        ('{x|fallback: "Hi {n|upper}" |length}', 7),
        ("{n|equals:'ivan'}", True),
        ('{n|value:"yes" or "no"}', '"yes" or "no"'),
        ("{q|regex:'(.+)'}", "a"),
        ("{'open}", "{'open}"),
        ("{'a' b}", "{'a' b}"),
    ],
)
def test_a_text_in_quotes_stands_for_itself_and_bars_in_it_have_no_meaning(text: str, result: Any) -> None:
    assert rendered(text, n="ivan", q="'a'") == result


def test_words_of_people_in_a_quoted_text_are_escaped() -> None:
    scope = Scope({"n": "<i>{n}"}, frozenset({"n"}), HTML)
    assert render("{'<b>{n}</b>'} {'{n}'|upper} {x|fallback:'{n}'}", scope).value == (
        "<b>&lt;i&gt;{n}</b> &lt;I&gt;{N} &lt;i&gt;{n}"
    )


def test_an_index_is_also_written_in_brackets() -> None:
    values = {"a": [{"n": [1, 2]}, {"n": [3, 4]}], "odd[0]": "whole name"}
    paths = ["a[0].n[1]", "a[-1].n.0", "a[1].n[-1]", "odd[0]"]
    assert [rendered(f"{{{path}}}", **values) for path in paths] == [2, 3, 4, "whole name"]
    assert rendered("{a[5]} {a[x]}", **values) == "{a[5]} {a[x]}"


def test_what_a_person_wrote_in_a_list_is_escaped_however_the_index_is_written() -> None:
    scope = Scope({"a": [{"n": "<"}]}, frozenset({"a"}), HTML)
    assert render("{a[0].n} {a.0.n}", scope).value == "&lt; &lt;"


def test_a_path_leads_into_mappings_and_lists_from_both_ends() -> None:
    values = {"user": {"phones": [{"n": 1}, {"n": 2}], "0": "zero"}, "flat.name": "flat"}
    paths = ["user.phones.0.n", "user.phones.-1.n", "user.0", "flat.name", " user.phones.1.n "]
    assert [rendered(f"{{{path}}}", **values) for path in paths] == [1, 2, "zero", "flat", 2]


@pytest.mark.parametrize(
    "path",
    ["user.phones.2", "user.phones.-3", "user.name", "user.phones.x", "text.0", "text.upper", "user.phones.", "."],
)
def test_a_path_that_leads_nowhere_stays_as_written(path: str) -> None:
    values = {"user": {"phones": [1, 2]}, "text": "abc"}
    assert rendered(f"{{{path}}} {{{path}|upper}}", **values) == f"{{{path}}} {{{path}|upper}}"


@pytest.mark.parametrize("value", [5, 2.5, True, None, [1, 2], {"a": 1}, "text", ""])
def test_one_whole_placeholder_keeps_the_type_of_its_value(value: Any) -> None:
    result = rendered("{x}", x=value)
    assert (result, type(result)) == (value, type(value))


def test_mixed_text_is_a_string() -> None:
    assert rendered("{a}{b}", a=1, b=2) == "12"
    assert (
        rendered("[{n}] [{t}] [{l}] [{m}]", n=None, t=True, l=[1, "a"], m={"ключ": 1})
        == '[] [True] [1, a] [{"ключ": 1}]'
    )


@pytest.mark.parametrize(
    "text",
    ["{unknown}", "a {unknown|upper} b", "{a_{unknown}}", '{"a": [1, {"b": 2}]}', "{}", "{ }", "{", "}", "}{", "{{"],
)
def test_what_is_unknown_or_not_closed_stays_as_written(text: str) -> None:
    assert render(text, Scope({})).value == text
    assert render(text, Scope({})).warnings == ()


def test_a_value_in_braces_that_names_no_field_stays_as_it_is() -> None:
    assert rendered("{answer}", answer='{"ok": true}') == '{"ok": true}'


def test_a_brace_that_is_not_closed_does_not_disturb_the_placeholders_after_it() -> None:
    assert rendered("{a {x|fallback:{y} {x}", x=1, y=2) == "{a {x|fallback:2 1"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (r"\{x}", "{x}"),
        (r"\{x\}", "{x}"),
        (r"\\{x}", r"\1"),
        (r"\\\{x}", r"\{x}"),
        (r"C:\dir\\ {x}", r"C:\dir\\ 1"),
        (r"{x|fallback:a}\n", r"1\n"),
        (r"{no|fallback:a\|b}", "a|b"),
        (r"{no|fallback:\{a\}}", "{a}"),
        (r"{t|equals:a\|b}", True),
        (r"{u|regex:\{(\w+)\}}", "in"),
        (r"{u|regex:[{}]}", "{"),
        (r"{u|regex:[^{|]+}", "a"),
        (r"{u|regex:\p{L}{2}}", "in"),
    ],
)
def test_a_backslash_takes_the_meaning_of_a_brace_or_bar_away(text: str, result: Any) -> None:
    assert rendered(text, x=1, t="a|b", u="a|{in}") == result


def test_in_markdown_the_backslashes_stay_because_telegram_removes_them() -> None:
    scope = Scope({"x": 1}, escaping=MARKDOWN_V2)
    assert render(r"\{x\} {x} {no|fallback:a\|b}", scope).value == r"\{x\} 1 a\|b"


@pytest.mark.parametrize("text", ["", "text", "a | b } c", "a" * 100_000])
def test_a_text_without_an_opening_brace_is_not_parsed_and_returned_as_the_same_object(text: str) -> None:
    parsed = parse.cache_info()
    assert render(text, Scope({"a": 1})).value is text
    assert parse.cache_info() == parsed


def test_a_text_with_placeholders_is_parsed_once() -> None:
    texts = [f"{{a}} and {{b}} {number // 3}" for number in range(9)]
    before = parse.cache_info()
    assert [render(text, Scope({"a": 1, "b": 2})).value for text in texts][-1] == "1 and 2 2"
    after = parse.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (3, 6)
    assert after.maxsize == 2048


def test_all_texts_of_an_actions_attributes_are_rendered() -> None:
    attributes: Data = {"inline": [["{a}", {"Назад, {a}": "menu_{a}"}]], "count": "{n}", "flag": True}
    result = render_all(attributes, Scope({"a": "я", "n": 3}))
    assert result.value == {"inline": [["я", {"Назад, я": "menu_я"}]], "count": 3, "flag": True}


def test_attributes_without_placeholders_are_the_same_object() -> None:
    attributes: Data = {"inline": [["Да", {"Назад": "menu"}]], "count": 3}
    assert render_all(attributes, Scope({})).value is attributes


def test_a_warning_in_attributes_names_its_place() -> None:
    result = render_all({"inline": [["a", {"b": "{x|+1}"}]], "text": "{x|no}"}, Scope({"x": "y"}))
    assert [(one.path, one.code) for one in result.warnings] == [
        ("inline.0.1.b", "MODIFIER_FAILED"), ("text", "MODIFIER_UNKNOWN"),
    ]  # fmt: skip


def test_mistakes_are_found_without_values() -> None:
    assert [one.code for one in problems("{'{x|nonsense}'|upper} {x|fallback:'{y|truncate:z}'}")] == [
        "MODIFIER_UNKNOWN", "MODIFIER_PARAMETER",
    ]  # fmt: skip
    found = problems("ok {x|truncte:5} {x|truncate:a} {a|fallback:{b|regex:(}} {x|format:{f}} {x|regex:a|b} {open")
    assert [(one.code, one.offset) for one in found] == [
        ("MODIFIER_UNKNOWN", 3), ("MODIFIER_PARAMETER", 17), ("MODIFIER_PARAMETER", 44), ("MODIFIER_UNKNOWN", 72),
        ("BRACE_UNCLOSED", 86),
    ]  # fmt: skip
    assert "did you mean truncate?" in str(found[0].message)
    assert "parentheses" in str(found[3].message)
    assert problems("no braces") == ()
