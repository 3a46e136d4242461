"""Replies to a press and the result of a question, in Russian and English. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from core.answers.values import answer_text
from core.answers.words import AskedInText
from core.model.question import AnswerKind, AnswerState, AnswerTotals, GivenAnswer, Late, Option, Question
from core.model.text.text_parts import beginning_of
from core.updates.events import Event

_RESULTS: Mapping[str, tuple[str, str]] = {
    "confirmed": ("Спасибо, отмечено.", "Thank you, noted."),
    "answered": ("Ответ записан: {answer}", "Your answer: {answer}"),
    "waiting": (
        "Мест нет: «{answer}». Вы в списке ожидания; если место освободится, придёт сообщение.",
        "No place is free for “{answer}”. You are on the waiting list, and will get a message if one is.",
    ),
    "changed": ("Ответ изменён: {answer}", "Your answer is now: {answer}"),
    "same": ("Уже записано: {answer}", "Noted already: {answer}"),
    "closed": ("Приём ответов закончен. Записано: {answer}", "Closed. Your answer stays: {answer}"),
    "late": ("Приём ответов закончен. Ответ отмечен как поздний.", "Closed. Your answer is noted as late."),
    "late_counted": ("Ответ записан с опозданием: {answer}", "Your answer was late and counts: {answer}"),
    "final": ("Ответ изменить нельзя. Записано: {answer}", "Answers cannot be changed. Yours: {answer}"),
    "many": ("Ответ меняли слишком часто. Записано: {answer}", "Changed too often. Your answer: {answer}"),
}
_ANONYMOUS: Mapping[str, tuple[str, str]] = {
    "answered": ("Ответ принят. Кто как ответил, не хранится.", "Your answer counts. Who answered what is not stored."),
    "same": ("Вы уже ответили: анонимный ответ не меняется.", "You have answered: anonymous answers do not change."),
    "closed": ("Приём ответов закончен.", "Answers are no longer accepted."),
}
_REFUSALS: Mapping[str, tuple[str, str]] = {
    "ANSWER_NOT_YOURS": ("Этот вопрос задан не вам.", "This question was not asked of you."),
    "ANSWER_STRANGER": (
        "Вы ещё не привязаны. Напишите этому боту личное сообщение /start, потом ответьте снова.",
        "You are not linked yet. Send /start to this bot in a private chat, then answer again.",
    ),
    "ANSWER_PERSON_DELETED": ("Этот вопрос задан не вам.", "This question was not asked of you."),
    "QUESTION_NOT_FOUND": ("Этот вопрос больше не хранится.", "This question is no longer kept."),
    "ANSWER_TOKEN_WRONG": ("Эта кнопка не действует.", "This button does not work."),
}

_NEEDS_ACTION_FIRST = (
    *(AnswerState.OPEN, AnswerState.SILENT, AnswerState.UNREACHABLE),
    *(AnswerState.LATE, AnswerState.NOT_ASKED, AnswerState.ANSWERED),
)
_CLOSED: tuple[Mapping[str, str], Mapping[str, str]] = (
    {
        "head": "Приём ответов закончен: «{text}»",
        "open": "Пока не ответили",
        "silent": "Не ответили",
        "unreachable": "Не дошло",
        "not_asked": "Ещё не отправлено",
        "late": "Ответили поздно",
        "answered": "Ответили",
        "sum": "Сумма",
        "waiting": "ждут места",
        "withheld": "Анонимных ответов меньше пяти: итоги не показываются.",
    },
    {
        "head": "Closed: “{text}”",
        "open": "No answer yet",
        "silent": "No answer",
        "unreachable": "Not reached",
        "not_asked": "Not sent yet",
        "late": "Late",
        "answered": "Answered",
        "sum": "Sum",
        "waiting": "waiting for a place",
        "withheld": "There are fewer than five anonymous answers: no totals are shown.",
    },
)
_PLACE = (
    "Место освободилось и теперь ваше: {option}.\n«{text}»",
    "A place has become free, and it is yours: {option}.\n“{text}”",
)
_SHORT = 100
"""Characters of a text that the result names."""
_TITLE = 40
"""Characters of a question in a list."""
_MOST_LISTED = 5


def result_text(given: GivenAnswer) -> str:
    """Return what a press has led to, in the language of the question."""
    question, name = given.question, given.result
    if question.is_anonymous:
        return anonymous_text(name, question.locale)
    if name == "answered" and question.kind is AnswerKind.CONFIRM:
        name = "confirmed"
    if name == "late" and question.late is Late.COUNT:
        name = "late_counted"
    if given.row.waiting and name in ("answered", "changed", "same"):
        name = "waiting"
    return _in(question.locale, _RESULTS[name]).format(answer=_shortened(answer_text(question, given.row)))


def anonymous_text(result: str, locale: str) -> str:
    """Return what an answer to an anonymous question has led to."""
    return _in(locale, _ANONYMOUS[result])


def which_question(asked: Sequence[tuple[str, AskedInText]]) -> str:
    """Return the text that lists the open questions of an address, because it is unclear which one was answered."""
    locale = asked[0][1].question.locale if asked else "ru"
    if not asked:
        return _in(locale, _REFUSALS["QUESTION_NOT_FOUND"])
    begin = _in(
        locale, ("Неясно, на какой вопрос ответ. Ответьте так:", "It is unclear what you answer. Reply like this:")
    )
    return "\n".join(
        [begin, *(f"{beginning_of(text)[:_TITLE]}: {_choices(one)}" for text, one in asked[:_MOST_LISTED])]
    )


def _choices(asked: AskedInText) -> str:
    if not asked.question.has_options:
        locale = asked.question.locale
        by_number = _in(locale, ("{} и ответ", "{} and the answer"))
        quoting = _in(locale, ("ответьте на само сообщение", "reply to the message itself"))
        return by_number.format(asked.numbers[0]) if asked.numbers else quoting
    pairs = zip(asked.numbers, asked.question.options, strict=False)
    return ", ".join(f"{number} - {option.text}" for number, option in pairs)


def is_alert(given: GivenAnswer) -> bool:
    """Return whether the person has to know more than the message shows."""
    return given.row.waiting > 0 or given.result not in ("answered", "changed", "same")


def refusal_text(code: str, event: Event) -> str:
    """Return why a press does not count, in the language of the person."""
    return _in(str(event.get("language_code") or "ru"), _REFUSALS[code])


def closing_text(text: str, question: Question, totals: AnswerTotals) -> str:
    """Return the result of a question for its sender."""
    words = _CLOSED[1] if question.locale == "en" else _CLOSED[0]
    shown = [state for state in totals.states if state != "answered" or not question.has_options]
    head = words["head"].format(text=_shortened(text))
    return "\n".join([head, *_value_lines(question, totals, words), *_state_lines(totals, shown, words)])


def totals_lines(question: Question, totals: AnswerTotals, language: str) -> Sequence[str]:
    """Return what has become of a question so far, first what needs action."""
    words = _CLOSED[1] if language == "en" else _CLOSED[0]
    return [*_state_lines(totals, _NEEDS_ACTION_FIRST, words), *_value_lines(question, totals, words)]


def _state_lines(totals: AnswerTotals, shown: Iterable[AnswerState], words: Mapping[str, str]) -> Sequence[str]:
    return [f"{words[state]}: {n}" for state in shown if state in words and (n := totals.states[state])]


def _value_lines(question: Question, totals: AnswerTotals, words: Mapping[str, str]) -> Sequence[str]:
    if totals.withheld:
        return [words["withheld"]] if totals.closed_at else []
    lines = [f"{one.text}: {_counted(one, totals, words)}" for one in question.options]
    return lines if totals.sum is None else [*lines, f"{words['sum']}: {totals.sum / 100:g}"]


def _counted(option: Option, totals: AnswerTotals, words: Mapping[str, str]) -> str:
    counted, waiting = totals.options.get(option.key, 0), totals.waiting.get(option.key, 0)
    return f"{counted} ({words['waiting']}: {waiting})" if waiting else str(counted)


def place_text(text: str, question: Question, key: str) -> str:
    """Return what a person is told that has got a place."""
    option = question.option(key)
    return _in(question.locale, _PLACE).format(option=option.text if option else key, text=_shortened(text))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"


def _in(locale: str, texts: tuple[str, str]) -> str:
    return texts[1] if locale.startswith("en") else texts[0]
