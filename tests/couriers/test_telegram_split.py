"""Splitting a text for Telegram."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.text.text_parts import split_text, utf16_length

FAMILY = "👩‍👩‍👧‍👦"
TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("aя \n😀\u0306\u200d🏽")), max_size=90
)


@given(TEXTS, st.integers(2, 20))
def test_the_parts_join_to_the_text_and_each_fits(text: str, longest: int) -> None:
    parts = split_text(text, longest)
    assert "".join(parts) == text
    assert all(utf16_length(part) <= longest for part in parts)
    assert text == "" or all(parts)


@given(TEXTS)
def test_the_length_is_counted_in_utf16_code_units(text: str) -> None:
    assert utf16_length(text) == sum(2 if character > "\uffff" else 1 for character in text)


def test_a_text_that_fits_is_one_part() -> None:
    assert list(split_text("я" * 4096)) == ["я" * 4096]
    assert list(split_text("😀" * 2048)) == ["😀" * 2048]
    assert list(split_text("")) == [""]


def test_a_surrogate_pair_is_not_cut() -> None:
    assert list(split_text("a" * 4095 + "😀")) == ["a" * 4095, "😀"]
    assert [len(part) for part in split_text("😀" * 2049)] == [2048, 1]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("aaaa bbbb cccc", ["aaaa bbbb ", "cccc"]),
        ("aaaa\nbb bb cccc", ["aaaa\n", "bb bb cccc"]),
        ("aaaaaaaaaaaaaa", ["aaaaaaaaaaaa", "aa"]),
        ("aaaaaaaaaaaa bbb", ["aaaaaaaaaaaa", " bbb"]),
    ],
)
def test_a_part_ends_after_a_line_or_word(text: str, parts: list[str]) -> None:
    assert list(split_text(text, 12)) == parts


@pytest.mark.parametrize("visible_character", [FAMILY, "й", "👍🏽", "e\u0301"])
def test_what_is_visible_as_one_character_is_not_cut(visible_character: str) -> None:
    for before in range(13):
        parts = split_text("a" * before + visible_character + "a" * 12, 12)
        assert sum(visible_character in part for part in parts) == 1


def test_an_endless_run_of_accents_is_cut() -> None:
    assert [len(part) for part in split_text("\u0306" * 5000)] == [4096, 904]
