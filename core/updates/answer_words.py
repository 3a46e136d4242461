"""Replies to a press, in Russian and English. Pure."""

from collections.abc import Mapping

from core.model.question import AnswerKind, GivenAnswer, Late
from core.updates.events import Event

_RESULTS: Mapping[str, tuple[str, str]] = {
    "confirmed": ("Спасибо, отмечено.", "Thank you, noted."),
    "answered": ("Ответ записан: {answer}", "Your answer: {answer}"),
    "changed": ("Ответ изменён: {answer}", "Your answer is now: {answer}"),
    "same": ("Уже записано: {answer}", "Noted already: {answer}"),
    "closed": ("Приём ответов закончен. Записано: {answer}", "Closed. Your answer stays: {answer}"),
    "late": ("Приём ответов закончен. Ответ отмечен как поздний.", "Closed. Your answer is noted as late."),
    "late_counted": ("Ответ записан с опозданием: {answer}", "Your answer was late and counts: {answer}"),
    "final": ("Ответ изменить нельзя. Записано: {answer}", "Answers cannot be changed. Yours: {answer}"),
    "many": ("Ответ меняли слишком часто. Записано: {answer}", "Changed too often. Your answer: {answer}"),
}
_REFUSALS: Mapping[str, tuple[str, str]] = {
    "ANSWER_NOT_YOURS": ("Этот вопрос задан не вам.", "This question was not asked of you."),
    "ANSWER_PERSON_DELETED": ("Этот вопрос задан не вам.", "This question was not asked of you."),
    "QUESTION_NOT_FOUND": ("Этот вопрос больше не хранится.", "This question is no longer kept."),
    "ANSWER_TOKEN_WRONG": ("Эта кнопка не действует.", "This button does not work."),
}


def result_text(given: GivenAnswer) -> str:
    """Return what a press has led to, in the language of the question."""
    question, name = given.question, given.result
    if name == "answered" and question.kind is AnswerKind.CONFIRM:
        name = "confirmed"
    if name == "late" and question.late is Late.COUNT:
        name = "late_counted"
    option = question.option(given.row.value)
    return _in(question.locale, _RESULTS[name]).format(answer=option.text if option else given.row.value)


def is_alert(given: GivenAnswer) -> bool:
    """Return whether the person has to know more than the message shows."""
    return given.result not in ("answered", "changed", "same")


def refusal_text(code: str, event: Event) -> str:
    """Return why a press does not count, in the language of the person."""
    return _in(str(event.get("language_code") or "ru"), _REFUSALS[code])


def _in(locale: str, texts: tuple[str, str]) -> str:
    return texts[1] if locale.startswith("en") else texts[0]
