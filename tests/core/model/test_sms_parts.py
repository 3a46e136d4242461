"""Counting parts, choosing the alphabet, converting numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.contacts.addresses import e164
from core.model.text.text_parts import CONCATENATED, SINGLE, Coding, coding_of, size, sms_parts

PARTS: list[tuple[str, Coding, int]] = [
    ("", Coding.GSM, 1),
    ("a" * 160, Coding.GSM, 1),
    ("a" * 161, Coding.GSM, 2),
    ("a" * 306, Coding.GSM, 2),
    ("a" * 307, Coding.GSM, 3),
    ("€" * 80, Coding.GSM, 1),
    ("€" * 81, Coding.GSM, 2),
    ("a" * 152 + "€" + "a" * 152, Coding.GSM, 3),
    ("я" * 70, Coding.UCS2, 1),
    ("я" * 71, Coding.UCS2, 2),
    ("я" * 134, Coding.UCS2, 2),
    ("я" * 135, Coding.UCS2, 3),
    ("😀" * 35, Coding.UCS2, 1),
    ("я" * 66 + "😀" + "я" * 66, Coding.UCS2, 3),
    ("a" * 160 + "я", Coding.UCS2, 3),
    ("я" * 4096, Coding.UCS2, 62),
]


@pytest.mark.parametrize(("text", "coding", "count"), PARTS, ids=[f"{count} of {text[:1]}" for text, _, count in PARTS])
def test_the_alphabet_and_parts_of_a_text(text: str, coding: Coding, count: int) -> None:
    assert coding_of(text) is coding
    assert sms_parts(text) == count


@pytest.mark.parametrize("letter", ["я", "“", "”", "№", "–", "…", "`", "\t", "ç", "😀"])
def test_one_character_outside_gsm_makes_the_text_ucs2(letter: str) -> None:
    assert coding_of("hello" + letter) is Coding.UCS2


@pytest.mark.parametrize("letter", [*"^{}\\[~]|€\f"])
def test_a_character_of_the_extension_takes_two_septets(letter: str) -> None:
    assert coding_of(letter) is Coding.GSM
    assert size(letter, Coding.GSM) == 2


@given(st.text(st.sampled_from("a€я😀"), max_size=400))
def test_the_count_is_close_to_the_sum_of_sizes(text: str) -> None:
    coding = coding_of(text)
    total, room = sum(size(letter, coding) for letter in text), CONCATENATED[coding]
    if total <= SINGLE[coding]:
        assert sms_parts(text) == 1
    else:
        assert -(-total // room) <= sms_parts(text) <= -(-total // (room - 1))


NUMBERS = [
    ("+79991112233", "+79991112233"),
    ("89991112233", "+79991112233"),
    ("79991112233", "+79991112233"),
    ("9991112233", "+79991112233"),
    ("8 (999) 111-22-33", "+79991112233"),
    ("+7 999 111‑22–33", "+79991112233"),
    ("8\u00a0999.111.22.33", "+79991112233"),
    ("0049 30 1234567", "+49301234567"),
    ("+49 (30) 1234567", "+49301234567"),
    ("+44 (0)20 7946 0958", "+442079460958"),
    ("+15551234567", "+15551234567"),
]


@pytest.mark.parametrize(("written", "number"), NUMBERS)
def test_a_number_is_converted_to_e164(written: str, number: str) -> None:
    assert e164(written) == number


@pytest.mark.parametrize(
    "written", ["", "+", "112", "8999111223", "+0123456789", "phone", "+7999a112233", "٨٩٩٩١١١٢٢٣٣", "1" * 20]
)
def test_other_text_is_not_a_number(written: str) -> None:
    assert e164(written) is None
