"""Cutting a text for Telegram."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from couriers.telegram.split import split, units

pytestmark = pytest.mark.row("D-20", "D-25")

FAMILY = "👩‍👩‍👧‍👦"
TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("aя \n😀\u0306\u200d🏽")), max_size=90
)


@given(TEXTS, st.integers(2, 20))
def test_the_parts_are_the_text_and_each_fits(text: str, longest: int) -> None:
    parts = split(text, longest)
    assert "".join(parts) == text
    assert all(units(part) <= longest for part in parts)
    assert text == "" or all(parts)


@given(TEXTS)
def test_a_length_is_what_utf_16_takes(text: str) -> None:
    assert units(text) == sum(2 if character > "\uffff" else 1 for character in text)


def test_what_fits_stays_whole() -> None:
    assert list(split("я" * 4096)) == ["я" * 4096]
    assert list(split("😀" * 2048)) == ["😀" * 2048]
    assert list(split("")) == [""]


def test_a_surrogate_pair_stays_whole() -> None:
    assert list(split("a" * 4095 + "😀")) == ["a" * 4095, "😀"]
    assert [len(part) for part in split("😀" * 2049)] == [2048, 1]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("aaaa bbbb cccc", ["aaaa bbbb ", "cccc"]),
        ("aaaa\nbb bb cccc", ["aaaa\n", "bb bb cccc"]),
        ("aaaaaaaaaaaaaa", ["aaaaaaaaaaaa", "aa"]),
        ("aaaaaaaaaaaa bbb", ["aaaaaaaaaaaa", " bbb"]),
    ],
)
def test_a_line_or_a_word_is_the_place_to_cut(text: str, parts: list[str]) -> None:
    assert list(split(text, 12)) == parts


@pytest.mark.parametrize("seen_as_one", [FAMILY, "й", "👍🏽", "e\u0301"])
def test_what_is_seen_as_one_character_is_not_cut(seen_as_one: str) -> None:
    for before in range(13):
        parts = split("a" * before + seen_as_one + "a" * 12, 12)
        assert sum(seen_as_one in part for part in parts) == 1


def test_a_tower_of_accents_is_cut_nevertheless() -> None:
    assert [len(part) for part in split("\u0306" * 5000)] == [4096, 904]
