"""Why something is refused, in the language of the person."""

import ast
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.errors import Conflict, Forbidden, Invalid, InvalidForRecipient, InvalidMany, NotFound, QuotaExceeded, Refused
from core.sentence import in_language, problem, sentence, sentences
from scenarios.words import why_refused
from tests.support.paths import ROOT

VALUE_MISSING = InvalidForRecipient("VALUE_MISSING", "Anna has no value for {{course}}.", "0", "Anna (7)", "course")


@pytest.mark.parametrize(
    ("refusal", "english", "russian"),
    [
        (Conflict("CANCELLED", "The delivery was cancelled."), "The delivery was cancelled.", "Сообщение отменено."),
        (NotFound("TUBE_UNKNOWN", "There is no tube x.", about="x"), "There is no tube x.", "x: Такой очереди нет."),
        (
            QuotaExceeded(9, timedelta(days=1), timedelta(minutes=90)),
            "The quota of 9 deliveries in 24 h is used up; the next one is possible in 1 h 30 min.",
            "Квота исчерпана. Снова можно через 1 ч 30 мин.",
        ),
        (
            InvalidMany("One value is missing.", [VALUE_MISSING]),
            "One value is missing.",
            "Anna (7), {{course}}: Не хватает значения для подстановки в тексте.",
        ),
        (
            InvalidMany("Two faults.", [Invalid("TEXT_EMPTY", "No text."), Invalid("GROUP_NOT_FOUND", "?", about="x")]),
            "Two faults.",
            f"{problem('TEXT_EMPTY').in_language('ru')} x: {problem('GROUP_NOT_FOUND').in_language('ru')}",
        ),
        (
            InvalidMany("Many.", [Invalid("VALUE_MISSING", "", about=str(n)) for n in range(7)]),
            "Many.",
            " ".join(f"{n}: {problem('VALUE_MISSING').in_language('ru')}" for n in range(5)) + " И ещё 2.",
        ),
        (
            Conflict("QUIET_HOURS", "Quiet.", retry_after=timedelta(hours=9)),
            "Quiet.",
            "Сейчас тихие часы. Снова можно через 9 ч.",
        ),
        (Forbidden("NO_MEMBER", sentence("is_no_mark", mark="<")), "< is no mark; a < is written &lt;", "< — не тег;"),
        (Invalid("TELEGRAM_REFUSED", "Bad Request: chat not found"), "Bad Request: chat not found", "Bad Request:"),
    ],
)
def test_a_refusal_is_said_in_the_language_of_the_person(refusal: Refused, english: str, russian: str) -> None:
    said = why_refused(refusal)
    assert in_language(said, "en") == english
    assert in_language(said, "ru").startswith(russian)


REFUSALS = {"Conflict", "Forbidden", "Invalid", "NotFound", "Refused", "TooMany"}
OF_PROGRAMS = {"ANY", "TELEGRAM_REFUSED"}
"""Said by another program, or nowhere."""


def plain_refusals(path: Path) -> Iterator[str]:
    """The codes that a source refuses with, of which it makes no sentence."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in REFUSALS and len(node.args) > 1:
            code, detail = node.args[:2]
            if isinstance(code, ast.Constant) and isinstance(detail, ast.Constant | ast.JoinedStr):
                yield str(code.value)


def test_each_refusal_is_said_in_russian_too() -> None:
    """A bot puts it into `{error}`: by a sentence of its author, or by what its code means."""
    sources = (path for room in ("core", "scenarios") for path in (ROOT / room).rglob("*.py"))
    codes = {code for path in sources for code in plain_refusals(path)}
    assert len(codes) > 100
    assert {code for code in codes if problem(code).code not in sentences()} - OF_PROGRAMS == set()
