"""What a text means as an answer to open questions: a number, the text of an option, yes or no, and a note. Pure.

3                    the option with the number 3
да, но опоздаю       the option that says yes, and a note, if one question is open
не приду             the option with this text
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from core.model.question import AnswerKind, Question

_NUMBERED = re.compile(r"\s*([1-9][0-9]?)(?:\s*[.):,;!?–—-]+\s*|\s+|$)([^\d\s].*)?", re.DOTALL)
_WORDED = re.compile(r"\s*(.+?)\s*(?:[.,;:!–—-]+\s*(.*))?", re.DOTALL)
_YES = frozenset({"да", "ага", "ок", "окей", "хорошо", "yes", "ok", "okay", "yep"})
_NO = frozenset({"нет", "no", "nope"})
_NEGATIVE = re.compile(
    r"(?:не|нет|no|not|don['’]t|cannot|can['’]t|i (?:do not|don['’]t|can['’]t|cannot))\b", re.IGNORECASE
)


class AskedInText(NamedTuple):
    """A question of an address. `numbers`: of its options. `place`: names it for the caller."""

    place: str
    question: Question
    numbers: Sequence[int]
    is_open: bool


class TextAnswer(NamedTuple):
    """`option`: its number in the question, from 0. `is_number`: the text has said a number."""

    place: str
    option: int
    note: str
    is_number: bool


UNCLEAR = "unclear"
"""The text answers, and it is not known what: the open questions are to be listed."""


def meaning(text: str, asked: Sequence[AskedInText]) -> TextAnswer | str | None:
    """Return what a text answers, `UNCLEAR`, or None if it is no answer. A word counts only for one open question."""
    if found := _NUMBERED.fullmatch(text):
        return _numbered(int(found[1]), (found[2] or "").strip(), asked)
    found = _WORDED.fullmatch(text)
    is_open = [one for one in asked if one.is_open]
    if not found or not is_open:
        return None
    said, note = " ".join(found[1].casefold().split()), (found[2] or "").strip()
    answers = [TextAnswer(one.place, n, note, is_number=False) for one in is_open for n in _options_called(said, one)]
    if said in _YES | _NO and not answers:
        return _yes_or_no(said, note, is_open)
    if not answers:
        return None
    return answers[0] if len(answers) == 1 else UNCLEAR


def _numbered(number: int, note: str, asked: Sequence[AskedInText]) -> TextAnswer | None:
    for one in asked:
        if number in one.numbers:
            return TextAnswer(one.place, one.numbers.index(number), note, is_number=True)
    return None


def _options_called(said: str, asked: AskedInText) -> Iterator[int]:
    for number, option in enumerate(asked.question.options):
        if said == " ".join(option.text.casefold().split()):
            yield number


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
