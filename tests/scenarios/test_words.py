"""The sentences of Ada: a code with parameters, in English and in Russian."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import msgspec
import pytest

from core.sentence import Sentence, Text, add_list, placed, sentence, sentences
from scenarios.bot import Action, Bot, Place, Scenario
from scenarios.bot.suggestion import did_you_mean
from scenarios.engine import failed
from scenarios.execution import runs
from scenarios.schema.types import WHOLE
from scenarios.words import in_language, together, translations
from tests.support.paths import ROOT

OF_CHANNELS = tuple(str(path.relative_to(ROOT)) for path in (ROOT / "couriers").glob("*/sentences.json"))
LISTS = ("core/sentences.json", "core/problems.json", "core/texts.json", "scenarios/words/sentences.json", *OF_CHANNELS)
ROOMS = ("core", "couriers", "delivery", "jobs", "providers", "scenarios")


def listed(path: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads((ROOT / path).read_text())
    return found


def parameters_of(text: str) -> set[tuple[str | None, str | None]]:
    return {(name, conversion) for _, name, _, conversion in Formatter().parse(text) if name}


@pytest.mark.parametrize("path", LISTS)
def test_both_languages_of_a_sentence_have_the_same_parameters(path: str) -> None:
    found = {code: texts for code, texts in listed(path).items() if code != "refused"}  # each language has one of two
    assert [code for code, (en, ru) in found.items() if parameters_of(en) != parameters_of(ru)] == []


@pytest.mark.parametrize("path", LISTS)
def test_sentences_stand_in_the_order_of_their_codes_one_on_a_line(path: str) -> None:
    found = listed(path)
    lines = [f"{json.dumps(code)}: {json.dumps(found[code], ensure_ascii=False)}" for code in sorted(found)]
    assert (ROOT / path).read_text() == "{\n" + ",\n".join(lines) + "\n}\n"


def made(path: Path) -> Iterator[tuple[str, set[str]]]:
    """The codes in a source, with the names of the parameters that it gives."""
    if not re.search(r"\b(?:sentence|say)\(", text := path.read_text()):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("sentence", "say") and node.args:
            named = {one.arg for one in node.keywords if one.arg}
            spread = any(one.arg is None for one in node.keywords)
            if isinstance(node.args[0], ast.Constant) and not spread:
                yield str(node.args[0].value), named


def test_each_sentence_is_made_with_its_parameters_and_none_is_left_over() -> None:
    texts = {
        code: {str(name) for name, _ in parameters_of(en)} for one in LISTS for code, (en, _) in listed(one).items()
    }
    texts["refused"] = {"detail", "text"}  # each language says one of them
    sources = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    wrong = [(path.name, code) for path in sources for code, given in made(path) if texts.get(code) != given]
    assert wrong == []
    named = {found for path in sources for found in re.findall(r"[\"'](\w+)(?=[\"'])", path.read_text())}
    for path in (ROOT / "scenarios/teacher/texts").glob("*.yaml"):
        named |= set(re.findall(r"\{text\.(\w+)\}", path.read_text()))
    pattern = re.compile(r"""(?:say|sentence)\(f["'](\w+_)\{""")
    begun = {found for path in sources for found in pattern.findall(path.read_text())}
    left_over = {code for code in texts.keys() - named if not code.startswith((*begun, "problem."))}
    assert left_over <= {"cyrillic", "greek", "latin"}


def phrases_in(path: Path) -> Iterator[str]:
    """The texts in a source, other than docstrings and patterns, that have three Russian words one after the other."""
    if not re.search("[А-Яа-я]", text := path.read_text()):
        return
    for node in ast.walk(ast.parse(text)):
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.Expr) or not isinstance(child, ast.Constant):
                continue
            if re.search(r"[А-Яа-яё]+[ ,]+[а-яё]+[ ,]+[а-яё]+", str(child.value)):
                yield str(child.value)


UNDERSTOOD = (
    "delivery/api/deliveries/series.py",  # an example of a time in words
    "core/threads/mail_reading.py",
    "core/directory/importing",
)


def test_what_people_are_told_stands_in_the_catalogue_and_not_in_python() -> None:
    sources = [path for room in ("core", "couriers", "delivery", "jobs") for path in (ROOT / room).rglob("*.py")]
    places = [(path.relative_to(ROOT).as_posix(), found) for path in sources for found in phrases_in(path)]
    assert [place for place in places if not place[0].startswith(UNDERSTOOD)] == []


@pytest.mark.parametrize(
    ("said", "english", "russian", "parameters"),
    [
        (
            did_you_mean(sentence("no_action", name="sned"), "sned", ["send"]),
            "there is no action 'sned'; did you mean send?",
            "нет действия 'sned'; возможно, send?",
            {"name": "sned", "meant": "send"},
        ),
        (
            placed("page", sentence("must_be", wanted=WHOLE.name, found=sentence("list"))),
            "page: must be a whole number, but is a list",
            "page: нужно целое число, а здесь список",
            {"place": "page", "wanted": "a whole number", "found": "a list"},
        ),
        (sentence("no_role", name="a list"), "there is no role 'a list'", "нет роли 'a list'", {"name": "a list"}),
        (
            did_you_mean(sentence("no_role", name="аdmin"), "аdmin", ["admin"]),
            "there is no role 'аdmin'; did you mean admin? Letter 1 is the Cyrillic а, not the Latin a.",
            "нет роли 'аdmin'; возможно, admin? Буква 1: а (кириллическая), а нужна a (латинская).",
            {
                "name": "аdmin",
                "meant": "admin",
                "place": "1",
                "alphabet": "Cyrillic",
                "written": "а",
                "other": "Latin",
                "wanted": "a",
            },
        ),
        (
            together([sentence("no_text"), sentence("no_photo")]),
            "there is no text; there is no photo",
            "нет текста; нет фото",
            {"first": "there is no text", "second": "there is no photo"},
        ),
    ],
)
def test_a_sentence_has_a_text_in_each_language(
    said: Sentence, english: str, russian: str, parameters: dict[str, str]
) -> None:
    assert (str(said), in_language(said, "en"), in_language(said, "ru")) == (english, english, russian)
    assert said.parameters == parameters
    stored = msgspec.json.decode(msgspec.json.encode(said), type=Sentence)
    assert (stored, translations(error=stored)) == (said, {"ru": {"error": russian}})


@pytest.mark.parametrize("error", [sentence("no_text"), "Bad Request: chat not found", ""])
def test_a_run_keeps_the_sentence_of_an_error_and_its_english_text(error: Text) -> None:
    action = Action("send", {}, Place("a.yaml"))
    scenario = Scenario("a.b", "b", (action,), Place("a.yaml"))
    entry = runs.decode_entry(runs.encode_entry((0, 0), failed("WRONG", error), 1))
    run = runs.replay(["a.b"], 0, [entry], Bot({"a.b": scenario}), {})
    ending = run.steps[0, 0].ending
    assert ending is not None
    assert (ending.error, entry.error, ending.returned.results) == (
        error,
        str(error),
        {"error": str(error), "code": "WRONG"},
    )


def test_what_another_program_has_said_stays_as_it_is() -> None:
    assert translations(error="Bad Request: chat not found") == {"ru": {}}
    assert in_language("Bad Request: chat not found", "ru") == "Bad Request: chat not found"
    assert in_language(placed("a.yaml:1", "{no} such {0}"), "ru") == "a.yaml:1: {no} such {0}"


def test_a_sentence_that_another_version_has_made_shows_what_is_known_of_it() -> None:
    assert str(Sentence("of_tomorrow", (("name", "x"), ("count", 2)))) == "of_tomorrow: x, 2"


def test_another_english_text_changes_no_russian_one(tmp_path: Path) -> None:
    texts = listed("scenarios/words/sentences.json")
    english = {code: [text.upper() if "{" not in text else text, other] for code, (text, other) in texts.items()}
    before = {code: one["ru"] for code, one in sentences().items()}
    (tmp_path / "sentences.json").write_text(json.dumps(english))
    try:
        add_list(tmp_path / "sentences.json")
        assert str(sentence("no_text")) == "THERE IS NO TEXT"
        assert {code: one["ru"] for code, one in sentences().items()} == before
    finally:
        (tmp_path / "sentences.json").write_text("{}")
        sentences.cache_clear()
