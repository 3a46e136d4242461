"""Rules for the question of a delivery. Pure.

Each refusal is an `Invalid` with a stable code and the path of the field.
"""

from collections.abc import Sequence
from datetime import datetime

from core.errors import Invalid
from core.model.clock import from_ms
from core.model.question import AnswerKind, Option, Question
from core.model.text.characters import is_blank

MAX_OPTIONS = 50
MAX_OPTION_TEXT = 100
"""Characters. A channel with shorter buttons does not show the answer, and its outcome says so."""

_READ = "read"
_CONFIRMATIONS = {"ru": "Прочитано", "en": "I have read it"}


def options_of(kind: AnswerKind, given: Sequence[Option], locale: str) -> Sequence[Option]:
    """Return the options of a question: a confirmation has one of its own, whose text may be given."""
    if kind is AnswerKind.CONFIRM and not given:
        return [Option(_READ, _CONFIRMATIONS[locale])]
    return given


def locale_of(text: str) -> str:
    """Return the language of a delivery: ru if its text has a Cyrillic letter, else en."""
    return "ru" if any("\u0400" <= letter <= "\u04ff" for letter in text) else "en"


def check_question(question: Question, deliver_at: datetime | None, now: datetime) -> None:
    """Check a question. Raises Invalid OPTIONS_MISSING, OPTIONS_NOT_ALLOWED, TOO_MANY_OPTIONS, OPTION_MALFORMED,
    OPTION_REPEATED, OPTION_TOO_LONG, UNTIL_PAST, UNTIL_BEFORE_DUE.
    """
    path, options = "answer.options", question.options
    if question.kind is AnswerKind.CONFIRM and len(options) != 1:
        raise Invalid("OPTIONS_NOT_ALLOWED", "A confirmation has one button.", path)
    if question.kind is AnswerKind.CHOICE and len(options) < 2:
        raise Invalid("OPTIONS_MISSING", "A choice has at least two options.", path)
    if len(options) > MAX_OPTIONS:
        raise Invalid("TOO_MANY_OPTIONS", f"At most {MAX_OPTIONS} options are allowed.", path)
    for number, one in enumerate(options):
        if is_blank(one.text) or is_blank(one.key):
            raise Invalid("OPTION_MALFORMED", "An option has a key and a text.", f"{path}.{number}")
        if len(one.text) > MAX_OPTION_TEXT:
            raise Invalid("OPTION_TOO_LONG", f"At most {MAX_OPTION_TEXT} characters.", f"{path}.{number}.text")
    if len({one.key for one in options}) < len(options):
        raise Invalid("OPTION_REPEATED", "Two options have the same key.", path)
    _check_until(question, deliver_at, now)


def _check_until(question: Question, deliver_at: datetime | None, now: datetime) -> None:
    if not question.until:
        return
    until = from_ms(question.until)
    if until <= now:
        raise Invalid("UNTIL_PAST", f"{until:%FT%TZ} has passed.", "answer.until")
    if deliver_at and until <= deliver_at:
        detail = f"The question would close before the delivery is due, at {deliver_at:%FT%TZ}."
        raise Invalid("UNTIL_BEFORE_DUE", detail, "answer.until")
