"""Replies to a press and the result of a question, in Russian and English. Pure."""

from collections.abc import Iterable, Sequence

from core.answers.values import AskedInText, answer_text
from core.model.question import AnswerKind, AnswerState, AnswerTotals, GivenAnswer, Late, Option, Question
from core.model.text.text_parts import beginning_of
from core.sentence import say

_NEEDS_ACTION_FIRST = (
    *(AnswerState.OPEN, AnswerState.SILENT, AnswerState.UNREACHABLE),
    *(AnswerState.LATE, AnswerState.NOT_ASKED, AnswerState.ANSWERED),
)
_SHORT = 100
"""Characters of a text that the result names."""
_TITLE = 40
"""Characters of a question in a list."""
_MOST_LISTED = 5
_UNSAID = "…"
"""In place of a hidden answer."""


def kept_text(given: GivenAnswer) -> str:
    """Return what an answer in words has led to, for a message that has a history: without a hidden answer."""
    question = given.question
    if not question.is_hidden:
        return result_text(given)
    if given.result in ("answered", "changed", "same") and not given.row.waiting:
        return say("answer_hidden", question.locale)
    return result_text(given, _UNSAID)


def result_text(given: GivenAnswer, answer: str = "") -> str:
    """Return what a press has led to, in the language of the question. `answer`: in place of what was answered."""
    question, name = given.question, given.result
    if question.is_anonymous:
        return anonymous_text(name, question.locale)
    if name == "answered" and question.kind is AnswerKind.CONFIRM:
        name = "confirmed"
    if name == "late" and question.late is Late.COUNT:
        name = "late_counted"
    if name == "closed" and not (given.row.value or given.row.text):  # another guardian has answered
        name = "closed_unanswered"
    if given.row.waiting and name in ("answered", "changed", "same"):
        name = "waiting"
    return say(f"answer_{name}", question.locale, answer=answer or _shortened(answer_text(question, given.row)))


def anonymous_text(result: str, locale: str) -> str:
    return say(f"anonymous_{result}", locale)


def which_question(asked: Sequence[tuple[str, AskedInText]], locale: str) -> str:
    """Return the text that lists the open questions of an address, because it is unclear which one was answered."""
    if not asked:
        return say("press_question_not_found", locale)
    lines = (f"{beginning_of(text)[:_TITLE]}: {_choices(one)}" for text, one in asked[:_MOST_LISTED])
    return "\n".join([say("question_unclear", locale), *lines])


def _choices(asked: AskedInText) -> str:
    if not asked.question.has_options:
        locale = asked.question.locale
        if asked.numbers:
            return say("question_by_number", locale, number=asked.numbers[0])
        return say("question_by_quote", locale)
    pairs = zip(asked.numbers, asked.question.options, strict=False)
    return ", ".join(f"{number} - {option.text}" for number, option in pairs)


def is_alert(given: GivenAnswer) -> bool:
    """Return whether the person has to know more than the message shows."""
    return given.row.waiting > 0 or given.result not in ("answered", "changed", "same")


def refusal_text(code: str, locale: str) -> str:
    """Return why a press does not count."""
    return say(f"press_{code.lower()}", locale)


def closing_text(text: str, question: Question, totals: AnswerTotals) -> str:
    language = question.locale
    shown = [state for state in totals.states if state != "answered" or not question.has_options]
    head = say("totals_head", language, text=_shortened(text))
    return "\n".join([head, *_value_lines(question, totals, language), *_state_lines(totals, shown, language)])


def totals_lines(question: Question, totals: AnswerTotals, language: str) -> Sequence[str]:
    """Return what has become of a question so far, first what needs action."""
    return [*_state_lines(totals, _NEEDS_ACTION_FIRST, language), *_value_lines(question, totals, language)]


def _state_lines(totals: AnswerTotals, shown: Iterable[AnswerState], language: str) -> Sequence[str]:
    counted = [(str(state), totals.states[state]) for state in shown if state in _NEEDS_ACTION_FIRST]
    counted.append(("conflicts", totals.conflicts))
    return [f"{say(f'totals_{name}', language)}: {n}" for name, n in counted if n]


def _value_lines(question: Question, totals: AnswerTotals, language: str) -> Sequence[str]:
    if totals.withheld:
        return [say("totals_withheld", language)] if totals.closed_at else []
    lines = [f"{one.text}: {_counted(one, totals, language)}" for one in question.options]
    return lines if totals.sum is None else [*lines, f"{say('totals_sum', language)}: {totals.sum / 100:g}"]


def _counted(option: Option, totals: AnswerTotals, language: str) -> str:
    counted, waiting = totals.options.get(option.key, 0), totals.waiting.get(option.key, 0)
    return f"{counted} ({say('totals_waiting', language)}: {waiting})" if waiting else str(counted)


def about_text(text: str, locale: str) -> str:
    """Return the line that names the question of an answer."""
    return say("answer_about", locale, text=_shortened(text))


def place_text(text: str, question: Question, key: str) -> str:
    """Return the text for a person that has got a place. `key`: of the option, "" if the answer is hidden."""
    option = question.option(key)
    if option is None:
        return say("place_given_hidden", question.locale, text=_shortened(text))
    return say("place_given", question.locale, option=option.text, text=_shortened(text))


def no_place_text(text: str, question: Question) -> str:
    """Return the text for a person that still waits for a place when the question is closed."""
    return say("place_none", question.locale, text=_shortened(text))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"
