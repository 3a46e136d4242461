"""A text with marks as HTML: tags within each other, and links that are not made twice."""

import pytest

from core.model.text.text_marks import Span
from couriers.email.message import PLACE, html_of_marked

A = '<a href="https://a">https://a</a>'
B = '<a href="https://b">https://b</a>'


def body_of(text: str, *spans: Span, around: str = PLACE) -> str:
    return html_of_marked(around, text, spans).partition("<div>")[2].partition("</div>")[0]


@pytest.mark.parametrize(
    ("text", "spans", "shown"),
    [
        ("see https://a", [], f"see {A}"),
        ("see https://a", [Span("bold", 4, 9)], f"see <b>{A}</b>"),
        ("https://a https://b", [Span("bold", 0, 9)], f"<b>{A}</b> {B}"),
        ("https://b", [Span("link", 0, 9, "https://a")], '<a href="https://a">https://b</a>'),
        ("https://b", [Span("code", 0, 9)], "<code>https://b</code>"),
        ("https://b", [Span("pre", 0, 9)], "<pre>https://b</pre>"),
        ("b https://b c", [Span("code", 0, 1), Span("bold", 12, 1)], f"<code>b</code> {B} <b>c</b>"),
        ("https://b", [Span("bold", 0, 9), Span("code", 0, 9)], "<code><b>https://b</b></code>"),
        ("abc", [Span("italic", 1, 1), Span("bold", 0, 3)], "<b>a<i>b</i>c</b>"),
        ("ab", [Span("bold", 0, 1), Span("italic", 1, 1)], "<b>a</b><i>b</i>"),
        ("🙂b", [Span("underline", 2, 1)], "🙂<u>b</u>"),
        ("x", [Span("link", 0, 1, "javascript:alert(1)")], "x"),
        ("x", [Span("link", 0, 1, "mailto:a@b.org")], '<a href="mailto:a@b.org">x</a>'),
        ("x", [Span("spoiler", 0, 1)], "x"),
        ("<b>\n", [Span("strikethrough", 0, 3)], "<s>&lt;b&gt;</s><br>\n"),
    ],
)
def test_marks_become_tags(text: str, spans: list[Span], shown: str) -> None:
    assert body_of(text, *spans) == shown


def test_the_marked_text_stands_in_its_place() -> None:
    assert body_of("a", Span("bold", 0, 1), around=f"<Anna>: {PLACE}!") == "&lt;Anna&gt;: <b>a</b>!"
