"""The words of the console: both languages have the same, and each is used."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.deliveries.histories.recipient_search import STILL_COMING, TELLING
from core.model.states import DeliveryState, Reason, Status, Verdict
from core.orders.series import MISSED
from core.sentence import problems_of_pages
from delivery.console.files import ON_FIRST_PAGES
from delivery.http.action_log import is_logged_for_everybody
from delivery.http.responses.problem_types import CODES
from delivery.routes import ROUTES

CONSOLE = Path("delivery/console/static")
PLURALS = {"en": {"one", "other"}, "ru": {"one", "few", "many"}}  # "other" is for fractions, and counts are whole
TABLES = ("delivery_state.", "status.", "reason.", "verdict.", "problem.")
"""Words for values of the API: complete, whichever of them a page shows."""
OPTIONAL = ("problem.", "said.")
"""An error of the API has an English text of its own; a text that Ada has written is the key of its translation."""


FOR_PROGRAMS = {
    *("ATTACHMENT_MALFORMED", "FOLLOW_UP_ALONE", "FOLLOW_UP_LANE", "FOR_PROGRAMS", "HISTORY_KEY_OF_ANOTHER_SENDER"),
    *(
        "ANSWER_WITHOUT_FILE",
        "FILE_UNKNOWN",
        "NOT_PRINTABLE",
        "OFFICE_NOT_FOUND",
        "RECIPIENT_AMBIGUOUS",
        "RECIPIENT_WITHOUT_ID",
    ),
    *("URGENT_NOT_ALLOWED", "WAIT_OUT_OF_RANGE", "WAIT_WITHOUT_FIRST"),
    *("EXPIRES_BEFORE_DUE", "NO_RECIPIENTS", "NOT_YOURSELF", "OPTIONS_NOT_ALLOWED", "RECIPIENT_MALFORMED"),
    *("UNKNOWN_CHANNEL",),
    *("CELL_TOO_LONG", "COLUMN_REPEATED", "COLUMN_WITHOUT_NAME", "VALUE_MISSING"),
}
"""Refusals of what no page can ask for; the last line: the page says them with the cell or the field."""


FIRST = ("main.js", "lib/page.js", "lib/api.js", "lib/live.js", "lib/words.js", "lib/dom.js", "pages/home.js")
FIRST_PAGES = (*FIRST, "pages/overview.js", "pages/sign_in.js")
"""The modules that show the first page to somebody."""
SIGNING_IN = ("core/sessions", "delivery/http/authentication.py", "delivery/api/sessions.py", "delivery/api/sign_in")
"""Where sign-ins are refused: those words are loaded with the first pages, those of other refusals with the others."""


def read(path: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads((CONSOLE / "words" / path).read_text())
    return table


def words(language: str) -> dict[str, Any]:
    first, further = read(f"{language}.json"), read(f"pages/{language}.json")
    assert not first.keys() & further.keys()
    return first | further


def texts(value: str | dict[str, str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value.values())


def placeholders(value: str | dict[str, str]) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", " ".join(texts(value))))


def test_both_languages_have_the_same_words_with_the_same_placeholders() -> None:
    english, russian = ({k: v for k, v in words(one).items() if not k.startswith(OPTIONAL)} for one in ("en", "ru"))
    assert english.keys() == russian.keys()
    assert not [key for key in english if placeholders(english[key]) != placeholders(russian[key])]


def test_the_action_log_has_words_for_what_each_route_changes() -> None:
    """As `whatOf` of pages/actions.js looks them up."""
    known = words("en").keys()
    for route in ROUTES:
        is_change = not route.reads and route.path.startswith(("/v1/deliveries/{id}", "/v1/cancellations"))
        if is_logged_for_everybody(route) or is_change:
            place, _, verb = route.path.partition(":")
            names = [one for one in place.split("/")[2:] if one != "queue" and not one.startswith("{")]
            did = verb or (names.pop() if f"did.{names[-1]}" in known else route.method)
            assert {f"thing.{names[-1].replace('-', '_')}", f"did.{did}"} <= known, route.path


def test_each_reading_in_the_action_log_is_a_route_or_a_sentence_that_is_said_in_russian() -> None:
    texts = [path.read_text() for path in Path("delivery").rglob("*.py")]
    readings = [one for text in texts for one in re.findall(r'write_reading\(f"([^"]+)"', text)]
    assert len(readings) == 5
    assert is_said("a message of a blocked person was not passed on")
    assert not [one for one in readings if not is_said(one)]


def test_why_a_job_waits_is_said_in_russian() -> None:
    reasons = [one for text in sources("jobs", "core/jobs") for one in re.findall(r'"(waits for [^"]*[^" ])"', text)]
    assert len(reasons) == 5
    assert not [one for one in reasons if not is_said(one)]


def sources(*places: str) -> Iterator[str]:
    """The code of these folders and files; a text that is written in several pieces is one."""
    for place in map(Path, places):
        for path in (place,) if place.is_file() else (*place.rglob("*.py"), *place.rglob("*.lua")):
            yield re.sub(r'"\n\s*f?"', "", path.read_text())


def is_said(text: str) -> bool:
    """Return whether a text of the code, with its expressions in braces, has a translation."""
    forms = (key.removeprefix("said.") for key in words("ru") if key.startswith("said."))
    return any(re.sub(r"\{.+?\}", "{}", text) == re.sub(r"\{.+?\}", "{}", form) for form in forms)


def test_everything_that_keeps_a_person_from_being_reached_has_words_and_advice() -> None:
    """As `why_not_reached` of core says them; the other reasons are of people who were, or may have been."""
    others = {Reason.REACHED_ELSEWHERE, Reason.UNKNOWN_ELSEWHERE, Reason.FAILED_ELSEWHERE, Reason.NO_RECEIPT}
    reasons = {*Reason} - others - {Reason.IN_DAY_MESSAGE}
    whys = {*map(str, reasons), *map(str, TELLING), *STILL_COMING}
    for language in ("en", "ru"):
        known = words(language).keys()
        assert {f"{table}.{why}" for table in ("why", "advice") for why in whys} <= known


def test_what_is_refused_of_a_message_is_said_in_russian() -> None:
    """Who writes in the console reads it; English is what the API says."""
    rules = [path for folder in ("core/orders", "core/answers") for path in Path(folder).rglob("*.py")]
    named = set(re.findall(r'"([A-Z]+(?:_[A-Z]+)+)"', "\n".join(path.read_text() for path in rules)))
    said = {key.removeprefix("problem.") for key in problems_of_pages("ru")}
    assert not (named & CODES.keys()) - said - FOR_PROGRAMS


@pytest.mark.parametrize("language", ["en", "ru"])
def test_a_plural_has_every_form_of_its_language_and_depends_on_count(language: str) -> None:
    for key, value in words(language).items():
        if isinstance(value, dict):
            assert value.keys() == PLURALS[language], key
            assert "count" in placeholders(words("en")[key]) | placeholders(value), key


@pytest.mark.parametrize("path", ["en.json", "ru.json", "pages/en.json", "pages/ru.json"])
def test_words_stand_in_the_order_of_their_keys_one_on_a_line(path: str) -> None:
    table = read(path)
    lines = [f"{json.dumps(key)}: {json.dumps(table[key], ensure_ascii=False)}" for key in sorted(table)]
    assert (CONSOLE / "words" / path).read_text() == "{\n" + ",\n".join(lines) + "\n}\n"


@pytest.mark.parametrize("language", ["en", "ru"])
def test_the_console_has_plain_words_for_every_value_of_the_api(language: str) -> None:
    table = words(language)
    for name, values in (
        ("delivery_state", DeliveryState),
        ("status", Status),
        ("reason", Reason),
        ("verdict", Verdict),
    ):
        known = {key.removeprefix(f"{name}.") for key in table if key.startswith(f"{name}.")}
        assert known == {str(value) for value in values}
    problems = {
        key.removeprefix("problem.") for key in {**table, **problems_of_pages(language)} if key.startswith("problem.")
    }
    assert problems <= CODES.keys() | {MISSED}


@pytest.mark.parametrize("language", ["en", "ru"])
def test_the_words_of_the_first_pages_are_loaded_with_them(language: str) -> None:
    code, table, further = scripts(FIRST_PAGES), read(f"{language}.json"), read(f"pages/{language}.json")
    called = set(re.findall(r'\b(?:t|rich)\("([^"]+)"', code)) | set(re.findall(r'title: "([^"]+)"', code))
    assert called <= table.keys()
    prefixes = {prefix for prefix in used_prefixes(code) if prefix != "problem."}
    assert not [key for key in further if key.startswith(tuple(prefixes))]
    refused = {code for text in sources(*SIGNING_IN) for code in re.findall(r'"([A-Z]+(?:_[A-Z]+)+)"', text)}
    assert {code for code in refused if f"problem.{code}" in problems_of_pages("ru")} <= {*ON_FIRST_PAGES}


def scripts(names: Iterable[str] = ()) -> str:
    """The code of these modules, or of all, without comments, which contain examples."""
    paths = [CONSOLE / name for name in names] or sorted(CONSOLE.rglob("*.js"))
    code = "\n".join(path.read_text() for path in paths)
    return re.sub(r"/\*.*?\*/", "", code, flags=re.DOTALL)


def used_prefixes(code: str) -> Iterator[str]:
    """Beginnings of keys that the code completes: t(`page.${name}`), word("status", value)."""
    yield from re.findall(r"`([a-z_]+(?:\.[a-z_]+)*\.)\$\{", code)
    yield from (f"{name}." for name in re.findall(r'word\("(\w+)"', code))


def test_every_word_is_used_and_every_used_word_is_there() -> None:
    code, table = scripts(), words("en")
    literals, prefixes = set(re.findall(r'"([a-z_]+(?:\.\w+)+)"', code)), tuple(used_prefixes(code))
    assert not [key for key in table if key not in literals and not key.startswith((*TABLES, *prefixes))], "unused"
    called = set(re.findall(r'\b(?:t|rich)\("([^"]+)"', code))
    assert not called - table.keys(), "missing"


def test_a_translated_text_of_ada_is_written_somewhere_as_it_is_translated() -> None:
    written = "\n".join(sources("cli", "core", "couriers", "delivery", "jobs", "lua", "scenarios"))
    written += Path("core/sentences.json").read_text()
    said = [key.removeprefix("said.") for key in words("ru") if key.startswith("said.")]
    pieces = {piece.strip("; :") for text in said for piece in re.split(r"\{\w+\}", text)}
    assert said
    assert not [one for one in pieces if one not in written]
