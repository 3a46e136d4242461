"""Texts with marks: what is shown of them, where they are cut, which ranges are marked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.text.text_marks import has_marks, shown_length, tokens
from core.model.text.text_parts import utf16_length
from couriers.sending import ParseMode, cut_text, plain_text, spans
from sandbox.bot_api.messages.formatting import parse_text

HTML, MARKDOWN = ParseMode.HTML, ParseMode.MARKDOWN_V2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("<b>bold</b> and <I class='x'>italic</I>", "bold and italic"),
        ("3 &lt; 5 &amp;&amp; 7 &gt; 2 &#128512; &quot;x&quot;", '3 < 5 && 7 > 2 😀 "x"'),
        ("a < b, a > b, a & b", "a < b, a > b, a & b"),
        ('<a href="https://example.org/?a=1&amp;b=2">here</a>.', "here (https://example.org/?a=1&b=2)."),
        ('<a href="https://example.org/">example.org</a>', "example.org"),
        ('<a href="tg://user?id=1">Anna</a>', "Anna"),
        ('<pre><code class="language-python">x = 1</code></pre>', "x = 1"),
        ("<b>never closed, <unknown>unknown</unknown>", "never closed, unknown"),
        ("</b>ended only", "ended only"),
    ],
)
def test_the_plain_text_of_html_has_no_tags(text: str, shown: str) -> None:
    assert plain_text(text, HTML) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("*bold* _italic_ __under__ ~gone~ ||hidden||", "bold italic under gone hidden"),
        (r"1\.5 \* 2 \= 3\!", "1.5 * 2 = 3!"),
        (r"[here](https://example.org/\)) \[no\]", "here (https://example.org/)) [no]"),
        ("`a*b_c` and ```python\nx = a*b\n```", "a*b_c and x = a*b\n"),
        (">quoted\n**>more", "quoted\nmore"),
        ("![👍](tg://emoji?id=5)", "👍"),
        ("*never closed", "never closed"),
    ],
)
def test_the_plain_text_of_markdown_has_no_marks(text: str, shown: str) -> None:
    assert plain_text(text, MARKDOWN) == shown


def test_a_text_without_a_parse_mode_is_its_own_plain_text() -> None:
    assert plain_text("<b>*x*</b>", ParseMode.PLAIN) == "<b>*x*</b>"


@pytest.mark.parametrize(
    ("text", "longest", "cut"),
    [
        ("<b>Hello <i>you &amp; me</i></b> and <u>all</u>", 12, "<b>Hello <i>you...</i></b>"),
        ("<b>Hello <i>you &amp; me</i></b> and <u>all</u>", 15, "<b>Hello <i>you &amp; ...</i></b>"),
        ('<a href="https://example.org">' + "x" * 9 + "</a>", 8, '<a href="https://example.org">xxxxx...</a>'),
        ("&lt;" * 9, 8, "&lt;" * 5 + "..."),
        ("<b>fits</b>", 4, "<b>fits</b>"),
        ("<u>" + "x" * 9 + "<b>y</b></u>", 6, "<u>xxx...</u>"),
    ],
)
def test_a_cut_breaks_no_tag_and_no_entity(text: str, longest: int, cut: str) -> None:
    assert cut_text(text, HTML, longest) == cut


@pytest.mark.parametrize(
    ("text", "longest", "cut"),
    [
        (r"*Hello _you and [me and them](https://x.org)_* \.", 18, r"*Hello _you and [m\.\.\.](https://x.org)_*"),
        (r"\.\.\.\.\.\.", 5, r"\.\.\.\.\."),
        ("`code that is long`", 8, r"`code \.\.\.`"),
    ],
)
def test_a_cut_breaks_no_mark_and_no_escape(text: str, longest: int, cut: str) -> None:
    assert cut_text(text, MARKDOWN, longest) == cut


def test_a_plain_text_is_cut_with_three_dots_and_no_emoji_is_halved() -> None:
    assert cut_text("x" * 5000, ParseMode.PLAIN, 4096) == "x" * 4093 + "..."
    assert cut_text("x" * 4096, ParseMode.PLAIN, 4096) == "x" * 4096
    assert cut_text("👩‍👩‍👧‍👦" * 3, ParseMode.PLAIN, 24) == "👩‍👩‍👧‍👦..."
    assert cut_text("<b>bold</b>" * 2, ParseMode.PLAIN, 10) == "<b>bold..."


PIECES = st.sampled_from(["<b>", "</b>", "<i>", "</i>", '<a href="https://x.org">', "</a>", "&amp;", "слово ", "😀"])


def _balanced(pieces: list[str]) -> str:
    """The pieces with an end for each tag, in the right order."""
    text, is_open = "", list[str]()
    for piece in pieces:
        if not piece.startswith("</"):
            is_open += [f"</{piece[1]}>"] if piece.startswith("<") else []
            text += piece
        elif is_open and is_open[-1] == piece:
            text += is_open.pop()
    return text + "".join(reversed(is_open))


@given(st.lists(PIECES, max_size=40).map(_balanced), st.integers(4, 60))
def test_telegram_accepts_every_cut_of_what_it_accepts(text: str, longest: int) -> None:
    shown, _ = parse_text(text, "HTML")
    cut, _ = parse_text(cut_text(text, HTML, longest), "HTML")
    assert utf16_length(cut) <= longest
    assert cut == shown or shown.startswith(cut.removesuffix("..."))


@given(st.text("<>/ab&;lt*_`[]()\\!|~>\n😀", max_size=60), st.sampled_from(list(ParseMode)), st.integers(4, 30))
def test_any_text_is_read_and_cut(text: str, mode: ParseMode, longest: int) -> None:
    assert "".join(token.source for token in tokens(text, mode)) == text
    assert shown_length(cut_text(text, mode, longest), mode) <= longest or mode is not HTML


def test_the_marked_ranges_count_utf_16_units() -> None:
    text, found = spans('😀<b>A <i>B</i></b> <a href="https://x.org">C</a>', HTML)
    assert text == "😀A B C"
    assert found == [("italic", 4, 1, ""), ("bold", 2, 3, ""), ("link", 6, 1, "https://x.org")]
    assert spans("```py\nx```[l](https://x.org)", MARKDOWN)[1] == [("pre", 0, 1, "py"), ("link", 1, 1, "https://x.org")]


def test_escapes_are_no_marks() -> None:
    assert not has_marks("a &lt; b", HTML)
    assert not has_marks(r"a \* b", MARKDOWN)
    assert has_marks("<b>a</b>", HTML)
