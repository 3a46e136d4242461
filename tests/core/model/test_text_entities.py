"""A text with its entities is written as HTML or MarkdownV2 that shows the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.content import ParseMode
from core.model.text.text_entities import has_marks, marked
from core.model.text.text_marks import broken_mark, plain_text
from sandbox.bot_api.messages.formatting import parse_text
from tests.support.hypothesis_settings import SETTINGS

MODES = (ParseMode.HTML, ParseMode.MARKDOWN_V2)


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


@pytest.mark.parametrize(
    ("text", "entities", "html", "markdown"),
    [
        ("a<b & c.", [], "a&lt;b &amp; c.", "a<b & c\\."),
        ("hi you", [entity("bold", 3, 3)], "hi <b>you</b>", "hi *you*"),
        ("😀 да", [entity("italic", 3, 2)], "😀 <i>да</i>", "😀 _\rда_\r"),
        ("ab", [entity("bold", 0, 2), entity("underline", 0, 1)], "<b><u>a</u>b</b>", "*__\ra__\rb*"),
        ("ab", [entity("strikethrough", 0, 1), entity("spoiler", 1, 1)],
         "<s>a</s><tg-spoiler>b</tg-spoiler>", "~a~||b||"),
        ("x`.", [entity("code", 0, 3)], "<code>x`.</code>", "`x\\`.`"),
        ("x", [entity("pre", 0, 1, language="py")], '<pre><code class="language-py">x</code></pre>', "```py\nx\n```"),
        ("x", [entity("text_link", 0, 1, url='http://a/(b)?c="d"')],
         '<a href="http://a/(b)?c=&quot;d&quot;">x</a>', '[x](http://a/(b\\)?c="d")'),
        ("x", [entity("text_mention", 0, 1, user={"id": 7})],
         '<a href="tg://user?id=7">x</a>', "[x](tg://user?id=7)"),
        ("👍", [entity("custom_emoji", 0, 2, custom_emoji_id="5")],
         '<tg-emoji emoji-id="5">👍</tg-emoji>', "![👍](tg://emoji?id=5)"),
        ("a\nb", [entity("blockquote", 0, 3)], "<blockquote>a\nb</blockquote>", ">a\n>b"),
        ("#tag @name", [entity("hashtag", 0, 4), entity("mention", 5, 5)], "#tag @name", "\\#tag @name"),
        ("ab", [entity("bold", 5, 1), entity("bold", -1, 2), entity("bold", 0, 9)], "ab", "ab"),
    ],
)  # fmt: skip
def test_a_text_is_written_with_its_marks(text: str, entities: list[Any], html: str, markdown: str) -> None:
    assert [marked(text, entities, mode) for mode in MODES] == [html, markdown]


def test_only_entities_that_need_marks_count() -> None:
    assert not has_marks([entity("hashtag", 0, 1), entity("url", 2, 3), {"type": "new in 2030"}])
    assert has_marks([entity("hashtag", 0, 1), entity("bold", 2, 3)])


KINDS = st.sampled_from(["bold", "italic", "underline", "strikethrough", "spoiler", "code", "blockquote", "hashtag"])
ENTITIES = st.lists(st.builds(entity, KINDS, st.integers(0, 8), st.integers(0, 8)), max_size=4)
WORDS = st.text(st.sampled_from("ab <>&\"'_*[]()~`>#+-=|{}.!\\😀я"), max_size=10)


@SETTINGS
@given(WORDS, ENTITIES)
def test_whatever_the_entities_are_the_marks_are_whole_and_the_text_is_shown(text: str, entities: list[Any]) -> None:
    for mode in MODES:
        written = marked(text, entities, mode)
        assert plain_text(written, mode).replace("\r", "") == text
        assert broken_mark(written, mode) is None


@SETTINGS
@given(WORDS, WORDS.filter(bool), WORDS, KINDS.filter(lambda kind: kind not in ("hashtag", "blockquote")))
def test_the_bot_api_reads_the_same_entity_again(before: str, inside: str, after: str, kind: str) -> None:
    one = entity(kind, *(len(part.encode("utf-16-le")) // 2 for part in (before, inside)))
    for mode in MODES:
        assert parse_text(marked(before + inside + after, [one], mode), mode) == (before + inside + after, [one])
