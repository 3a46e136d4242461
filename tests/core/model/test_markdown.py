"""What language models write as Markdown is shown by Telegram as it was meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.content import ParseMode
from core.model.text.text_entities import marked, read_markdown
from core.model.text.text_marks import broken_mark, plain_text
from tests.support.hypothesis_settings import SETTINGS


@pytest.mark.parametrize(
    ("markdown", "html", "version_2"),
    [
        ("plain 1.5 - <b>!", "plain 1.5 - &lt;b&gt;!", "plain 1\\.5 \\- <b\\>\\!"),
        ("**bold** and __too__", "<b>bold</b> and <b>too</b>", "*bold* and *too*"),
        ("*it* _too_ snake_case_name 2*3*4", "<i>it</i> <i>too</i> snake_case_name 2*3*4",
         "_\rit_\r _\rtoo_\r snake\\_case\\_name 2\\*3\\*4"),
        ("***both***", "<b><i>both</i></b>", "*_\rboth_\r*"),
        ("**a *b* c**", "<b>a <i>b</i> c</b>", "*a _\rb_\r c*"),
        ("~~no~~", "<s>no</s>", "~no~"),
        ("## A **title** ##", "<b>A title</b>", "*A title*"),
        ("- one\n  * two\n+ three", "• one\n  • two\n• three", "• one\n  • two\n• three"),
        ("see `x**y**z`", "see <code>x**y**z</code>", "see `x**y**z`"),
        ("```py\nprint(1)\n```", '<pre><code class="language-py">print(1)</code></pre>', "```py\nprint(1)\n```"),
        ("[here](https://a.b/c_(d))", '<a href="https://a.b/c_(d)">here</a>', "[here](https://a.b/c_(d\\))"),
        (r"\*not\* marks", "*not* marks", "\\*not\\* marks"),
        ("unclosed **bold", "unclosed **bold", "unclosed \\*\\*bold"),
        ("a * b * c", "a * b * c", "a \\* b \\* c"),
    ],
)  # fmt: skip
def test_marks_are_written_for_both_parse_modes(markdown: str, html: str, version_2: str) -> None:
    text, entities = read_markdown(markdown)
    assert [marked(text, entities, mode) for mode in (ParseMode.HTML, ParseMode.MARKDOWN_V2)] == [html, version_2]


PIECES = [
    "*",
    "**",
    "_",
    "__",
    "`",
    "```\n",
    "~~",
    "[",
    "](http://x)",
    "# ",
    "- ",
    "\n",
    "a",
    "b c",
    "😀",
    "\\",
    "<",
    ".",
]


@SETTINGS
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_any_text_gives_whole_marks(written: str) -> None:
    text, entities = read_markdown(written)
    for mode in (ParseMode.HTML, ParseMode.MARKDOWN_V2):
        shown = marked(text, entities, mode)
        assert broken_mark(shown, mode) is None
        assert plain_text(shown, mode).replace("\r", "").startswith(text[:1])
