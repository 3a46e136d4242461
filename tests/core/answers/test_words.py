"""What a text means as an answer to open questions."""

import pytest

from core.answers.values import UNCLEAR, AskedInText, TextAnswer, meaning
from core.model.question import AnswerKind, Option, Question


def asked(place: str, first: int, *options: str, is_open: bool = True) -> AskedInText:
    kind = AnswerKind.CONFIRM if len(options) == 1 else AnswerKind.CHOICE
    question = Question(kind, [Option(f"o{n}", text) for n, text in enumerate(options)], "ru")
    return AskedInText(place, question, range(first, first + len(options)), is_open)


COMING = asked("coming", 1, "Приду", "Не приду")
SWIM = asked("swim", 3, "I swim", "I do not")
READ = asked("read", 5, "Прочитано")
COLOUR = asked("colour", 11, "Красный", "Синий", "Не знаю")


@pytest.mark.parametrize(
    ("text", "questions", "place", "option", "note"),
    [
        ("1", [COMING, SWIM], "coming", 0, ""),
        (" 4. ", [COMING, SWIM], "swim", 1, ""),
        ("11", [COMING, COLOUR], "colour", 0, ""),
        ("2 опоздал на поезд", [COMING, SWIM], "coming", 1, "опоздал на поезд"),
        ("1, но опоздаю", [COMING], "coming", 0, "но опоздаю"),
        ("да", [COMING], "coming", 0, ""),
        ("Да, но опоздаю", [COMING], "coming", 0, "но опоздаю"),
        ("НЕТ!", [COMING], "coming", 1, ""),
        ("yes", [SWIM], "swim", 0, ""),
        ("no - ill", [SWIM], "swim", 1, "ill"),
        ("ок", [READ], "read", 0, ""),
        ("не  приду", [COMING, SWIM, READ], "coming", 1, ""),
        ("прочитано.", [COMING, READ], "read", 0, ""),
    ],
)
def test_a_text_means_one_option_of_one_question(
    text: str, questions: list[AskedInText], place: str, option: int, note: str
) -> None:
    found = meaning(text, questions)
    assert isinstance(found, TextAnswer)
    assert (found.place, found.option, found.note, found.is_number) == (place, option, note, text.strip()[0].isdigit())


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("да", [COMING, SWIM]),
        ("no", [COMING, READ]),
        ("нет", [READ]),
        ("да", [COLOUR]),
        ("приду", [COMING, asked("again", 7, "Приду", "Нет")]),
    ],
)
def test_a_word_that_may_mean_several_answers_is_unclear(text: str, questions: list[AskedInText]) -> None:
    assert meaning(text, questions) == UNCLEAR


@pytest.mark.parametrize(
    "text",
    [
        *("3", "0", "100", "12", "1й", "11.30 буду", "2-3 человека", "1,2", "10 человек", "+79990000001", "1 5 минут"),
        *("", " ", "...", "да вы что", "не знаю", "привет", "STOP", "приду завтра", "нетрудно"),
    ],
)
def test_another_text_answers_nothing(text: str) -> None:
    assert meaning(text, [COMING]) is None


def test_a_closed_question_is_answered_by_its_number_only() -> None:
    closed = asked("coming", 1, "Приду", "Не приду", is_open=False)
    assert meaning("да", [closed]) is None
    assert meaning("приду", [closed]) is None
    assert meaning("2", [closed]) == TextAnswer("coming", 1, "", is_number=True)
    assert meaning("да", [closed, SWIM]) == TextAnswer("swim", 0, "", is_number=False)


@pytest.mark.parametrize("text", ["1 сентября придём", "2. Мая не будет", "1 September, at nine"])
def test_a_day_of_a_month_is_no_number_of_an_option(text: str) -> None:
    """`1 сентября придём` was counted as the first option, with a note."""
    assert meaning(text, [COMING]) is None
