"""Which group or supergroup a written message begins with."""

import pytest

from core.orders.choices import Choice, Recognised, UnclearWords, recognise

ONE = Choice("group", "g1", "ИВТ-101")
TWO = Choice("group", 102, "ИВТ-102")
LONG = Choice("group", "g3", "Ёлка вечерняя группа")
SHORT = Choice("supergroup", "s1", "Ёлка")
ALL = (ONE, TWO, LONG, SHORT)


@pytest.mark.parametrize(
    ("written", "choice", "text"),
    [
        ("ИВТ-101 Пары не будет", ONE, "Пары не будет"),
        ("ивт-101   Пары\nне будет", ONE, "Пары\nне будет"),
        ("g1 Пары не будет", ONE, "Пары не будет"),
        ("102 Пары не будет", TWO, "Пары не будет"),
        ("ИВТ-101: Пары не будет", ONE, "Пары не будет"),
        ("ИВТ-101, Пары не будет", ONE, "Пары не будет"),
        ("ИВТ-101\nПары не будет", ONE, "Пары не будет"),
        ("  \n ИВТ-101\nНачало: 10:00", ONE, "Начало: 10:00"),
        ("ИВТ-101 Начало: 10:00", ONE, "Начало: 10:00"),
        ("елка  вечерняя группа придите", LONG, "придите"),
        ("Ёлка придите", SHORT, "придите"),
        ("елка вечерняя: придите", LONG, "придите"),
        ("ИВТ-101", ONE, ""),
        ("ивт101 Пары не будет", ONE, "Пары не будет"),
        ("ИВТ–101 Пары не будет", ONE, "Пары не будет"),
    ],
)
def test_the_addressee_is_the_first_words_or_line_and_the_rest_is_the_text(
    written: str, choice: Choice, text: str
) -> None:
    assert recognise(written, ALL) == Recognised([choice], text)


@pytest.mark.parametrize(
    ("written", "choices", "text"),
    [
        ("ИВТ-101, ИВТ-102 пары не будет", [ONE, TWO], "пары не будет"),
        ("ивт101,ивт102: пары не будет", [ONE, TWO], "пары не будет"),
        ("ИВТ-101 и ИВТ-102\nПары не будет", [ONE, TWO], "Пары не будет"),
        ("ИВТ-101 + Ёлка вечерняя группа and ИВТ-102, придите", [ONE, LONG, TWO], "придите"),
        ("ИВТ-101, ИВТ-101 пары не будет", [ONE], "пары не будет"),
        ("ИВТ-101, 102 кабинет закрыт", [ONE], "102 кабинет закрыт"),
        ("ИВТ-101 и другие", [ONE], "и другие"),
        ("ИВТ-101 ИВТ-102 пишет раньше", [ONE], "ИВТ-102 пишет раньше"),
    ],
)
def test_further_titles_behind_a_comma_or_and_are_addressees_too(
    written: str, choices: list[Choice], text: str
) -> None:
    assert recognise(written, ALL) == Recognised(choices, text)


@pytest.mark.parametrize(
    "written", ["", "   ", "Пары не будет", "ИВТ-103 Пары не будет", "Ёл Пары не будет?", ":", "\n"]
)
def test_what_begins_with_no_whole_title_goes_to_nobody(written: str) -> None:
    assert isinstance(recognise(written, ALL), UnclearWords)


def test_the_beginning_of_several_titles_names_them() -> None:
    assert recognise("ивт: Пары не будет", ALL) == UnclearWords([ONE, TWO])
    assert recognise("ивт Пары не будет", ALL) == UnclearWords([ONE, TWO])


def test_a_word_that_only_begins_a_title_is_no_addressee_without_a_colon() -> None:
    group = Choice("group", "g12", "А-12")
    assert recognise("А пары не будет", [group]) == UnclearWords([group])
    assert recognise("А: пары не будет", [group]) == Recognised([group], "пары не будет")


@pytest.mark.parametrize(
    ("title", "written"), [("А-12", "А 12 мая пары не будет"), ("57", "5-7 мая пары не будет"), ("А-Б", "аб нет")]
)
def test_only_a_hyphen_between_a_letter_and_a_digit_may_be_left_out(title: str, written: str) -> None:
    assert isinstance(recognise(written, [Choice("group", "g", title)]), UnclearWords)


def test_two_titles_that_differ_in_a_hyphen_are_unclear() -> None:
    first, second = Choice("group", "g1", "11-Б"), Choice("group", "g2", "11Б")
    assert recognise("11б пары не будет", [first, second]) == UnclearWords([first, second])


def test_a_title_that_two_have_is_unclear() -> None:
    other = Choice("supergroup", "s9", "ивт-101")
    assert recognise("ИВТ-101 Пары не будет", (*ALL, other)) == UnclearWords([ONE, other])
    assert recognise("s9 Пары не будет", (*ALL, other)) == Recognised([other], "Пары не будет")
