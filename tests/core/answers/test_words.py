"""What a text means as an answer to open questions."""

from collections.abc import Sequence

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


LATE = asked("late", 1, "Приду!", "Приду, но опоздаю")


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
        ("приду, но опоздаю", [LATE], "late", 1, ""),
        ("Приду, но опоздаю, из-за врача", [LATE], "late", 1, "из-за врача"),
        ("приду, но с братом", [LATE], "late", 0, "но с братом"),
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
        *("3", "0", "100", "12", "1й", "11.30 буду", "2-3 человека", "10 человек", "+79990000001", "1 5 минут"),
        *("", " ", "...", "да вы что", "не знаю", "привет", "STOP", "приду завтра", "нетрудно"),
    ],
)
def test_another_text_answers_nothing(text: str) -> None:
    assert meaning(text, [COMING]) is None


SWIM_LATER = asked("swim", 5, "I swim", "I do not")
EACH = Question(AnswerKind.CHOICE, [Option(f"{n}:{key}", key) for n in (5, 6) for key in ("yes", "no")], "ru")
CHILDREN = AskedInText("children", EACH, range(1, 5), is_open=True, is_about_children=True)


@pytest.mark.parametrize("text", ["1 и 4", "1 4", "1, 4", "1,4.", "1; 4", "1 and 4", "1 1 4"])
def test_several_numbers_answer_for_each_child(text: str) -> None:
    """`1 и 4` was the answer for one child with a note; `1 4` was none."""
    assert meaning(text, [SWIM_LATER, CHILDREN]) == TextAnswer("children", 0, "", is_number=True, more=[3])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(text, UNCLEAR) for text in ("1 и 2", "1, 5", "5,6", "1 нет 2", "1 да, 4 нет", "5 или 6", "5, нас 6")],
        ("1 7", None),
        ("1, будем в 2.30", TextAnswer("children", 0, "будем в 2.30", is_number=True)),
        ("1, нас 6", TextAnswer("children", 0, "нас 6", is_number=True)),
    ],
)
def test_several_numbers_of_one_child_or_of_two_questions_are_unclear(text: str, expected: object) -> None:
    """The second number was a note, and its answer was lost."""
    assert meaning(text, [SWIM_LATER, CHILDREN]) == expected


@pytest.mark.parametrize(
    ("text", "kinds", "expected"),
    [
        ("двое", (AnswerKind.NUMBER, AnswerKind.DATE, AnswerKind.TEXT), UNCLEAR),
        ("двое", (AnswerKind.NUMBER, AnswerKind.DATE), None),
        ("двое", (AnswerKind.TEXT,), TextAnswer("0", 0, "", is_number=False, value="двое")),
        ("3 двое", (AnswerKind.NUMBER, AnswerKind.DATE, AnswerKind.TEXT), TextAnswer("2", 0, "", True, "двое")),
    ],
)
def test_a_word_without_a_number_answers_none_of_several_written_questions(
    text: str, kinds: Sequence[AnswerKind], expected: object
) -> None:
    """It was the answer to the question for a text, whatever its writer meant."""
    waiting = [AskedInText(str(n), Question(kind, [], "ru"), [n + 1], True) for n, kind in enumerate(kinds)]
    assert meaning(text, waiting) == expected


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
