"""What holds for every text and every value."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.placeholders import HTML, MARKDOWN_V2, MODIFIERS, PLAIN, Scope, problems, render, render_all
from tests.support.hypothesis_settings import SETTINGS

FAST = settings(SETTINGS, max_examples=100)
PIECES = [
    "{", "}", "|", ":", "\\", ",",
    "a", "b", ".", "0", "-1", " ", "(", ")", "[", "]", "{2,}", "x", "<b>", "?", "é", "{a}", "{b|",
    *(f"|{modifier.name}:" for modifier in MODIFIERS.values()),
]  # fmt: skip
texts = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES), max_size=15).map("".join))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts)
values = st.recursive(scalars, lambda inner: st.one_of(st.lists(inner), st.dictionaries(texts, inner)), max_leaves=5)
escapings = st.sampled_from([PLAIN, HTML, MARKDOWN_V2])


@FAST
@given(texts, values, values, escapings, st.booleans())
def test_no_text_and_no_value_raises(text: str, a: Any, b: Any, escaping: Any, person: bool) -> None:
    people = frozenset({"a"} if person else ())
    scope = Scope({"a": a, "b": b}, people, escaping)
    render(text, scope)
    render_all({text: [text]}, scope)
    problems(text)


@FAST
@given(st.text(), values)
def test_a_text_without_an_opening_brace_is_unchanged(text: str, value: Any) -> None:
    plain = text.replace("{", "")
    assert render(plain, Scope({"a": value})).value is plain


@FAST
@given(st.text(), st.text(), st.one_of(st.text(), st.integers(), st.booleans()))
def test_a_text_that_was_rendered_with_plain_values_is_not_changed_by_rendering_it_again(
    before: str, after: str, value: Any
) -> None:
    scope = Scope({"a": value if not isinstance(value, str) else value.translate({123: None})})
    once = render(f"{before.translate({123: None, 92: None})}{{a}}{after.translate({123: None, 92: None})}", scope)
    assert once.warnings == ()
    assert render(str(once.value), scope).value == str(once.value)


@FAST
@given(
    st.text(), st.sampled_from(["{a}", "{a|upper}", "{b|fallback:{a}}", "x{a|truncate:5}", "{a|regex:.+}", "{a|comma}"])
)
def test_in_html_nothing_that_a_person_writes_becomes_markup(words: str, text: str) -> None:
    result = render(text, Scope({"a": words}, frozenset({"a"}), HTML)).value
    assert isinstance(result, str)
    assert not set(result) & set('<>"')


@FAST
@given(st.text(), st.text())
def test_what_a_person_writes_cannot_show_another_field(words: str, secret: str) -> None:
    scope = Scope({"a": words + "{secret}", "secret": f"<{secret}>"}, frozenset({"a"}))
    assert render("{a}", scope).value == words + "{secret}"
