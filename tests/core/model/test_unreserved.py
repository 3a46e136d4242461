"""A text in the characters of a URL that need no escape, for cursors."""

import re

import pytest

from core.model.text.characters import ONE, from_unreserved, to_unreserved


@pytest.mark.parametrize("text", ["", "a", "ИВТ-21", "a~b", "~7E", "%41", "a b/c?d&e=f#g+h", "\0\t\n", "👍", "1.2-3_4"])
def test_a_text_comes_back_and_needs_no_escape(text: str) -> None:
    written = to_unreserved(text)
    assert from_unreserved(written) == text
    assert re.fullmatch(f"{ONE}*", written)
