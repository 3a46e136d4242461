"""Answers that people write: texts, numbers, dates, files. What is a value, and what is wanted of a person. Pure.

A number and a date have one form whatever way they were written; a text and a file have no value, only their words.
"""

import re
from datetime import date

from core.model.question import AnswerKind, AnswerRow, Question
from core.sentence import say

MOST_CHARACTERS = 4096
_NUMBER = re.compile(r"([+\-−–]?)(\d{1,12}|\d{1,3}(?:[ \u00a0\u202f]\d{3}){1,3})(?:[.,](\d{1,2}))?", re.ASCII)
_ISO_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_DATE = re.compile(r"(\d{1,2})[./](\d{1,2})[./](\d{4}|\d{2})", re.ASCII)


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
