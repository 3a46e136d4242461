"""Findings of the check and warnings have a Russian text with the same parameters."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scenarios.words import in_language, translated, translations
from tests.support.paths import ROOT

NAME = re.compile(r"\{(\w+)\}")
WORDS: dict[str, str] = json.loads((ROOT / "scenarios/words/ru.json").read_text())
FINDING = [ROOT / "scenarios" / part for part in ("loader", "check", "schema", "converter", "actions", "telegram")]
REPORTS = ("error", "warning", "report", "here", "_refuse", "_complain", "_report", "failed")
FAULTS = (
    "Invalid",
    "Conflict",
    "NotFound",
    "Forbidden",
    "TelegramRefused",
    "RuleUnusable",
    "VariableFault",
    "ScheduleFault",
)
ENDS = ("did_you_mean", "suggestion", "_unquoted", "beside")
"""Of what stands at the end of a text, or is empty."""
INNER = ("complaint", "fault", "message", "refused", "error", "broken[", "unknown_variable(")
"""Of values that are texts of their own."""
PUT_TOGETHER = (
    "{name} cannot",
    "{message} waits",
    "there is no {what}",
    "{count} in the dialect",
    "{name}: {reason[",
    "{name}: {written!r} is none of",
    "{name}: {text[",
    "{refusal.code}: {refusal.detail",
    "the press is answered",
    "the text cannot be read as",
    "this text has a colon",
    "{node.text!r} is not {what}",
)
"""Beginnings of texts that are made of several: the tests of the check have an example of each."""


def test_both_languages_have_the_same_parameters() -> None:
    assert [one for one in WORDS if {*NAME.findall(one)} ^ {*NAME.findall(WORDS[one])}] == []


def test_words_stand_in_the_order_of_their_keys_one_on_a_line() -> None:
    lines = [": ".join(json.dumps(one, ensure_ascii=False) for one in (key, WORDS[key])) for key in sorted(WORDS)]
    assert (ROOT / "scenarios/words/ru.json").read_text() == "{\n" + ",\n".join(lines) + "\n}\n"


def test_each_text_is_found_by_its_own_words() -> None:
    for english, russian in WORDS.items():
        text = NAME.sub(lambda name: "there is no text" if name[1] == "text" else f"'{name[1]}'", english)
        found = translated(text)
        assert found, english
        assert found.russian == NAME.sub(lambda name: "нет текста" if name[1] == "text" else f"'{name[1]}'", russian)


@pytest.mark.row("C-88")
def test_each_finding_in_the_sources_has_a_russian_text() -> None:
    found = {sample: place for path in FINDING for one in sorted(path.rglob("*.py")) for place, sample in texts_of(one)}
    assert [f"{place}: {sample}" for sample, place in found.items() if not translated(sample)] == []
    assert len(found) > 100


def texts_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and a sample of each finding that is written in a call, or emitted with its node."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
            *REPORTS,
            *FAULTS,
        ):
            found = node.args
        elif isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
            found = node.value.elts[1:]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "message":
            found = [node.value]
        else:
            continue
        yield from (
            (f"{path.name}:{node.lineno}", text)
            for one in found
            if " " in (text := sample_of(one)) and "%s" not in text
        )


def sample_of(node: ast.expr) -> str:
    """Return a text with samples in place of its values; "" if it is no literal, or is put together."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if not isinstance(node, ast.JoinedStr) or ast.unparse(node)[2:].startswith(PUT_TOGETHER):
        return ""
    return "".join(str(one.value) if isinstance(one, ast.Constant) else sample_value(one) for one in node.values)


def sample_value(node: ast.expr) -> str:
    written = ast.unparse(node.value) if isinstance(node, ast.FormattedValue) else ""
    if any(one in written for one in ENDS):
        return ""
    return "there is no text" if any(one in written for one in INNER) else "'x'"


def test_no_text_is_left_of_a_source_that_is_gone() -> None:
    folders = [ROOT / one for one in ("scenarios", "core/model/text", "core/orders")]
    sources = "".join(path.read_text() for folder in folders for path in folder.rglob("*.py")).lower()
    words = {word for one in WORDS for word in re.findall(r"\w{5,}", NAME.sub("|", one).lower())}
    assert sorted(word for word in words if word not in sources) == []


@pytest.mark.parametrize(
    ("english", "russian", "parameters"),
    [
        (
            "there is no action 'sned'; did you mean send?",
            "нет действия 'sned'; возможно, send?",
            {"name": "sned", "meant": "send"},
        ),
        (
            "rules: must be a number, but is a list",
            "rules: нужно число, а здесь список",
            {"place": "rules", "wanted": "a number", "found": "a list"},
        ),
        (
            "rules: the rule at_least needs a value",
            "rules: правилу at_least нужно value",
            {"place": "rules", "name": "at_least"},
        ),
        (
            "ask needs text or attachment",
            "для ask нужно text или attachment",
            {"action": "ask", "first": "text", "second": "attachment"},
        ),
        ("there is no role 'a list'", "нет роли 'a list'", {"name": "a list"}),
    ],
)
def test_a_text_is_translated_with_the_texts_in_it(english: str, russian: str, parameters: dict[str, str]) -> None:
    found = translated(english)
    assert found is not None
    assert (found.russian, found.parameters) == (russian, parameters)
    assert (in_language(english, "ru"), in_language(english, "en")) == (russian, english)


@pytest.mark.parametrize(
    "part", ["a: ", "x is not ", "x; did you mean ", "none of: ", "{x}: there is no ", "x in line ", "\n"]
)
def test_the_time_to_read_a_text_of_an_author_does_not_grow_as_its_square(part: str) -> None:
    """A million characters would take hours."""
    for length in (50, 590, 1_000_000):
        text = (part * length)[:length]
        assert in_language(text, "ru")
        assert in_language(f"there is no action {text!r}; did you mean {text}?", "ru")


def test_what_another_program_has_said_stays_as_it_is() -> None:
    assert translated("Bad Request: chat not found") is None
    assert translations(error="Bad Request: chat not found") == {"ru": {}}
    assert in_language("Bad Request: chat not found", "ru") == "Bad Request: chat not found"
