"""Which marks of a text are broken, and where: those for which Telegram's Bot API refuses the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.content import ParseMode
from core.model.text.text_marks import broken_mark, plain_text, spans
from sandbox.bot_api.messages.formatting import parse_text
from sandbox.bot_api.state.errors import ApiError

HTML, MARKDOWN = ParseMode.HTML, ParseMode.MARKDOWN_V2


@pytest.mark.parametrize(
    ("mode", "text", "position", "reason"),
    [
        (HTML, "Пары <b>не будет", 6, "<b> is never closed"),
        (HTML, "<b>bold <i>both</b></i>", 16, "</b> comes before <i> is closed"),
        (HTML, "ended only</b>", 11, "</b> closes no mark"),
        (HTML, "group < 20", 7, "a < that begins no mark is written &lt;"),
        (HTML, "one<br>two", 4, "<br> is no mark; a < is written &lt;"),
        (HTML, "<b>", 1, "<b> is never closed"),
        (HTML, "😀<p>x</p>", 2, "<p> is no mark; a < is written &lt;"),
        (MARKDOWN, "*bold", 1, "* is never closed"),
        (MARKDOWN, "at 14.30", 6, "a . is written \\."),
        (MARKDOWN, "*a _b* c_", 6, "* comes before _ is closed"),
        (MARKDOWN, "a) b", 2, "a ) is written \\)"),
        (MARKDOWN, "[no address] here", 12, "a ] is written \\]"),
    ],
)
def test_the_first_broken_mark_is_found_with_its_place(mode: ParseMode, text: str, position: int, reason: str) -> None:
    found = broken_mark(text, mode)
    assert found is not None
    assert (found.position, str(found.reason)) == (position, reason)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (HTML, ""),
        (
            HTML,
            '<b>bold</b> <I>italic</I> <a href="https://x.org?a=1&b=2">link</a> &lt; & > <tg-spoiler>x</tg-spoiler>',
        ),
        (HTML, '<pre><code class="language-python">x = 1</code></pre><blockquote expandable>q</blockquote>'),
        (
            MARKDOWN,
            r"*bold* _italic_ __under__ ~gone~ ||hidden|| 14\.30 [l](https://x.org/a.b?c=1) `a.b*` ```py\nx = 1.5```",
        ),
        (MARKDOWN, ">quoted\n>more\n**>expandable\n>end||"),
        (MARKDOWN, "![👍](tg://emoji?id=5)"),
        (ParseMode.PLAIN, "<b> a < b *x. </i>"),
    ],
)
def test_right_marks_are_accepted(mode: ParseMode, text: str) -> None:
    assert broken_mark(text, mode) is None


pieces = [
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<B>",
    "<br>",
    "<",
    ">",
    "&amp;",
    "&",
    '<a href="https://x.org">',
    "</a>",
    "слово",
]


@given(st.lists(st.sampled_from(pieces), max_size=12).map("".join))
def test_html_is_broken_exactly_where_telegram_refuses_it(text: str) -> None:
    assert (broken_mark(text, HTML) is None) == accepted(text, HTML)


marks = [*"*_~`|[]().!>#\\", "__", "||", "```", "](https://x.org)", "слово", " "]


@given(st.lists(st.sampled_from(marks), max_size=10).map("".join))
def test_markdown_that_telegram_accepts_is_accepted(text: str) -> None:
    if accepted(text, MARKDOWN):
        assert broken_mark(text, MARKDOWN) is None


def accepted(text: str, mode: ParseMode) -> bool:
    try:
        parse_text(text, mode)
    except ApiError:
        return False
    return True


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a&nbsp;b &apos;&copy=2", "a&nbsp;b &apos;&copy=2"),
        ("&lt;&gt;&amp;&quot;", '<>&"'),
        ("&lt=2 &ltx", "<=2 &ltx"),
        ("&#1071;&#x42F; &#X42F; &#0; &#xD800; &#99999999;", "ЯЯ &#X42F; &#0; &#xD800; &#99999999;"),
        ("&amp;lt;", "&lt;"),
    ],
)
def test_only_the_entities_that_telegram_knows_are_decoded(written: str, shown: str) -> None:
    assert plain_text(written, ParseMode.HTML) == shown
    assert spans(f'<a href="https://example.org/?q={written}">x</a>', ParseMode.HTML)[1][0].target.endswith(shown)
