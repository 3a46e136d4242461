"""Answers that people write: texts, numbers, dates, files. What is a value, and what is wanted of a person. Pure.

A number and a date have one form whatever way they were written; a text and a file have no value, only their words.

The meaning of a text as an answer to open questions is a number, the text of an option, yes or no, and a note; or the
value that a question without options asks for:

    3                    the option with the number 3
    3 12.5               12.5 for the question with the number 3 that asks for a number
    да, но опоздаю       the option that says yes, and a note, if one question is open
    не приду             the option with this text
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from msgspec.structs import replace

from core.model.question import AnswerKind, AnswerRow, Question
from core.sentence import say

MOST_CHARACTERS = 4096
_NUMBER = re.compile(r"([+\-−–]?)(\d{1,12}|\d{1,3}(?:[ \u00a0\u202f]\d{3}){1,3})(?:[.,](\d{1,2}))?", re.ASCII)
_ISO_DATE = re.compile(r"([1-9]\d{3})-(\d{1,2})-(\d{1,2})", re.ASCII)
_DATE = re.compile(r"(\d{1,2})[./](\d{1,2})[./]([1-9]\d{3}|\d{2})", re.ASCII)

_MONTHS = (
    *("января", "февраля", "марта", "апреля", "мая", "июня", "июля", "августа", "сентября", "октября", "ноября"),
    *("декабря", "january", "february", "march", "april", "june", "july", "august", "september", "october"),
    *("november", "december"),
)
"""As they stand behind a day; without `may`, which is a verb, too."""
_NO_DATE = rf"(?!\s*\d{{1,2}}\.?\s+(?i:{'|'.join(_MONTHS)})\b)"
"""Before the number of a question: `1 сентября придём` begins with a day."""
_NUMBERED = re.compile(_NO_DATE + r"\s*([1-9][0-9]?)(?:\s*[.):,;!?–—-]+\s*|\s+|$)([^\d\s].*)?", re.DOTALL)
_SEVERAL = re.compile(r"\s*[1-9][0-9]?(?:(?:\s*[,;+&]\s*|\s+(?:и|and)\s+|\s+)[1-9][0-9]?)+[\s.!]*", re.IGNORECASE)
"""Numbers of options and nothing else: `1 и 4`, `1, 3`."""
_IN_WORDS = re.compile(r"(?<![\d.,:])[1-9][0-9]?(?![\d:]|[.,]\d)", re.ASCII)
"""A number in a note; of a time or an amount it is none."""
_AFTER_WORDS = re.compile("[.,;:!–—-]+")
_NUMBERED_VALUE = re.compile(_NO_DATE + r"\s*([1-9][0-9]?)[\s.):,;–—-]+(\S.*)", re.DOTALL)
_YES = frozenset({"да", "ага", "ок", "окей", "хорошо", "yes", "ok", "okay", "yep"})
_NO = frozenset({"нет", "no", "nope"})
_NEGATIVE = re.compile(
    r"(?:не|нет|no|not|don['’]t|cannot|can['’]t|i (?:do not|don['’]t|can['’]t|cannot))\b", re.IGNORECASE
)
UNCLEAR = "unclear"
"""The text answers, and it is not known what: the open questions are to be listed."""


def read_value(kind: AnswerKind, text: str) -> tuple[str, str] | None:
    """Return the value and the words of a written answer; None if it is none of this kind."""
    text = text.strip()
    match kind:
        case AnswerKind.TEXT:
            return ("", text) if 0 < len(text) <= MOST_CHARACTERS else None
        case AnswerKind.NUMBER:
            value = _number(text)
        case AnswerKind.DATE:
            value = _date(text)
        case _:
            return None
    return (value, "") if value else None


def may_be_value(kind: AnswerKind, text: str) -> bool:
    """Return whether a text looks as if it were meant as an answer, so that its writer gets a correction."""
    return kind is AnswerKind.TEXT or (kind is not AnswerKind.FILE and any(map(str.isdigit, text)))


def wanted(question: Question) -> str:
    """Return what an answer has to be, in the language of the question."""
    return say(f"wanted_{question.kind}", question.locale)


def in_language(question: Question, locale: str | None) -> Question:
    """Return the question as a person with this locale is asked; without one, in its own language. Options that its
    sender has written stay.
    """
    if not locale or locale == question.locale:
        return question
    usual, own = say("confirmation", question.locale), say("confirmation", locale)
    is_usual = question.kind is AnswerKind.CONFIRM
    options = [replace(one, text=own) if is_usual and one.text == usual else one for one in question.options]
    return replace(question, locale=locale, options=options)


def answer_text(question: Question | None, row: AnswerRow) -> str:
    """Return an answer as people read it: the text of an option, a number, a date, the words, the name of a file."""
    option = question.option(row.value) if question else None
    if option:
        return option.text
    is_file = question is not None and question.kind is AnswerKind.FILE
    return row.text if is_file else row.value or row.text


def _number(text: str) -> str:
    found = _NUMBER.fullmatch(text)
    if not found:
        return ""
    whole, rest = str(int(re.sub(r"\D", "", found[2]))), (found[3] or "").rstrip("0")
    value = f"{whole}.{rest}" if rest else whole
    return f"-{value}" if found[1] not in ("", "+") and value != "0" else value


def _date(text: str) -> str:
    iso, usual = _ISO_DATE.fullmatch(text), _DATE.fullmatch(text)
    try:
        if iso:
            return date(int(iso[1]), int(iso[2]), int(iso[3])).isoformat()
        if usual:
            year = int(usual[3]) + (2000 if len(usual[3]) == 2 else 0)
            return date(year, int(usual[2]), int(usual[1])).isoformat()
    except ValueError:
        pass
    return ""


class AskedInText(NamedTuple):
    """A question of an address. `numbers`: of its options, or the one of a question without options. `place`: names it
    for the caller. `is_about_children`: the options are those of each child.
    """

    place: str
    question: Question
    numbers: Sequence[int]
    is_open: bool
    is_answered: bool = False
    is_about_children: bool = False


class TextAnswer(NamedTuple):
    """`option`: its number in the question, from 0. `is_number`: the text has said a number. `value`: what a question
    without options gets; `is_wrong`: it is not what the question asks for. `more`: options for further children.
    """

    place: str
    option: int
    note: str
    is_number: bool
    value: str = ""
    is_wrong: bool = False
    more: Sequence[int] = ()


def meaning(text: str, asked: Sequence[AskedInText]) -> TextAnswer | str | None:
    """Return what a text answers, `UNCLEAR`, or None if it is no answer. A word counts only for one open question, a
    text, number or date without digits only for one that is not answered yet. Several numbers count for one option of
    each child.
    """
    written = [one for one in asked if not one.question.has_options]
    by_number = _numbered_value(text, written)
    if by_number and not by_number.is_wrong:
        return by_number
    chosen = _choice(text, [one for one in asked if one.question.has_options])
    return chosen or by_number or _only_value(text, written)


def written_answer(text: str, asked: AskedInText, *, is_number: bool = False) -> TextAnswer:
    """Return the answer to a question without options that a text is meant for."""
    is_wrong = read_value(asked.question.kind, text) is None
    return TextAnswer(asked.place, 0, "", is_number, text, is_wrong)


def _numbered_value(text: str, asked: Sequence[AskedInText]) -> TextAnswer | None:
    """Return the answer to the question whose number stands before the text, also a wrong one while it is open."""
    found = _NUMBERED_VALUE.fullmatch(text)
    for one in asked if found else ():
        assert found
        if int(found[1]) in one.numbers:
            answer = written_answer(found[2], one, is_number=True)
            return answer if one.is_open or not answer.is_wrong else None
    return None


def _only_value(text: str, asked: Sequence[AskedInText]) -> TextAnswer | str | None:
    waiting = [one for one in asked if one.is_open and not one.is_answered and one.question.kind is not AnswerKind.FILE]
    if not any(may_be_value(one.question.kind, text) for one in waiting):
        return None
    return written_answer(text, waiting[0]) if len(waiting) == 1 else UNCLEAR


def _choice(text: str, asked: Sequence[AskedInText]) -> TextAnswer | str | None:
    if _SEVERAL.fullmatch(text):
        return _several([int(number) for number in re.findall(r"\d+", text)], asked)
    if found := _NUMBERED.fullmatch(text):
        return _numbered(int(found[1]), (found[2] or "").strip(), asked)
    is_open, text = [one for one in asked if one.is_open], text.strip()
    if not text or not is_open:
        return None
    said, note = "", ""
    for words, note in _words_and_note(text):
        said = folded(words)
        called = [
            TextAnswer(one.place, n, note, is_number=False) for one in is_open for n in _options_called(said, one)
        ]
        if called:
            return called[0] if len(called) == 1 else UNCLEAR
    return _yes_or_no(said, note, is_open) if said in _YES | _NO else None


def _words_and_note(text: str) -> Iterator[tuple[str, str]]:
    """Emit what the words of an option and the note behind them may be: the option may have marks, too, so the longest
    words come first.
    """
    yield text, ""
    for mark in reversed(list(_AFTER_WORDS.finditer(text, 1))):
        yield text[: mark.start()], text[mark.end() :].strip()


def _numbered(number: int, note: str, asked: Sequence[AskedInText]) -> TextAnswer | str | None:
    for one in asked:
        if number in one.numbers:
            others = {int(found) for found in _IN_WORDS.findall(note)} - {number}
            if others.intersection(one.numbers):
                return UNCLEAR
            return TextAnswer(one.place, one.numbers.index(number), note, is_number=True)
    return None


def _several(numbers: Sequence[int], asked: Sequence[AskedInText]) -> TextAnswer | str | None:
    """Return the options of one question with these numbers, if each is about another child; None if a number is of no
    option.
    """
    if not set(numbers) <= {number for one in asked for number in one.numbers}:
        return None
    for one in asked:
        if set(numbers) <= set(one.numbers):
            chosen = [one.numbers.index(number) for number in dict.fromkeys(numbers)]
            children = {one.question.options[option].key.partition(":")[0] for option in chosen}
            if len(children) == len(chosen) and (one.is_about_children or len(chosen) == 1):
                return TextAnswer(one.place, chosen[0], "", is_number=True, more=chosen[1:])
    return UNCLEAR


def _options_called(said: str, asked: AskedInText) -> Iterator[int]:
    for number, option in enumerate(asked.question.options):
        if said and said == folded(option.text):
            yield number


def folded(text: str) -> str:
    """Return words as they are compared: without capitals, further blanks, and marks at their end."""
    return " ".join(text.casefold().split()).rstrip(" .!…")


def _yes_or_no(said: str, note: str, is_open: Sequence[AskedInText]) -> TextAnswer | str:
    if len(is_open) > 1:
        return UNCLEAR
    (asked,) = is_open
    option = option_of(asked.question, is_yes=said in _YES)
    return UNCLEAR if option is None else TextAnswer(asked.place, option, note, is_number=False)


def option_of(question: Question, *, is_yes: bool) -> int | None:
    """Return the option that a bare yes or no means; None if it is not certain."""
    if question.kind is AnswerKind.CONFIRM:
        return 0 if is_yes else None
    negative = [n for n, one in enumerate(question.options) if _NEGATIVE.match(one.text)]
    if len(question.options) != 2 or len(negative) != 1:
        return None
    return 1 - negative[0] if is_yes else negative[0]
