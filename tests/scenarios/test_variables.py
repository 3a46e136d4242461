"""Variables of a person, of a chat and of a run (C-93): declared, checked, set, and shown in a dry run."""

from datetime import UTC
from pathlib import Path

import pytest

from scenarios.bot.data import Data
from scenarios.bot.variables import Variable
from scenarios.check import check
from scenarios.check.dry_run import dry_run
from scenarios.loader import load
from scenarios.schema.variables import VariableFault, applied, change_of, ending_of_changes, fitted
from tests.scenarios.bot_folder import BotFolder
from tests.scenarios.loader.folder import with_russian

DECLARED = """
person:
  name: text
  age: {type: number}
  course: {options: [first, second]}
  visits: {type: number, default: 0, expire: 30d}
  rooms: list
run:
  total: {type: number, default: 10}
"""


def folder(path: Path, actions: str, declared: str = DECLARED) -> Path:
    return BotFolder(path).write("variables.yaml", declared).actions(actions).folder


def problems(path: Path) -> list[tuple[str, str]]:
    return [(one.code, one.message) for one in with_russian(check(path).problems)]


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("text", "  Anna ", "Anna"),
        ("number", "12,50", 12.5),
        ("number", "7", 7),
        ("date", "01.12.2026", "2026-12-01"),
        ("date", "01.12.2026 15:30", "2026-12-01T15:30:00+00:00"),
        ("choice", "SECOND", "second"),
        ("list", "a, b", ["a", "b"]),
    ],
)
def test_a_value_is_stored_in_the_form_of_its_type(kind: str, written: str, value: Data) -> None:
    assert fitted(written, Variable(kind, ("first", "second")), UTC) == value


@pytest.mark.parametrize(("kind", "written"), [("number", "many"), ("date", "12"), ("choice", "third")])
def test_a_value_of_another_type_is_refused(kind: str, written: str) -> None:
    with pytest.raises(VariableFault):
        fitted(written, Variable(kind, ("first", "second")), UTC)


def test_a_change_counts_appends_and_forgets() -> None:
    declared = {"person.n": Variable("number", default=5), "person.l": Variable("list")}
    assert applied(change_of("person.n", {"add": -2}, declared, UTC), None) == 3
    assert applied(change_of("person.l", {"append": "b"}, declared, UTC), ["a"]) == ["a", "b"]
    assert applied(change_of("person.n", None, declared, UTC), 9) is None


@pytest.mark.parametrize(("written", "value"), [(0, 0), ("0", 0), (0.0, 0)])
def test_zero_is_a_value_and_not_the_default(written: Data, value: Data) -> None:
    declared = {"person.n": Variable("number", default=5)}
    change, more = (change_of("person.n", one, declared, UTC) for one in (written, {"add": 1}))
    assert (applied(change, 9), applied(more, 0)) == (value, 1)
    for stored in ({}, {"person": {"n": 0}}):
        ending = ending_of_changes([change], {"person": {"n": 9}}, stored)
        assert ending.returned.results["person"] == {"n": value}


def test_a_dry_run_shows_the_values_after_set_and_the_defaults_before(tmp_path: Path) -> None:
    actions = """
    - {type: send, text: "{person.name|fallback:you}, {person.visits}, {run.total}"}
    - {type: set, variables: {person.name: "{event_text}", person.visits: {add: 1}, run.total: "{run.total|+5}"}}
    - {type: send, text: "{person.name}, {person.visits}, {run.total}", chain: completed,
       when: {person.visits: {rule: equals, value: 1}}}
    - {type: set, variables: {person.course: "{event_text}"}}
"""
    result = dry_run(load(folder(tmp_path, actions)).bot, {"user_id": 1, "event_text": "Anna & {x}"})
    texts = [row.send.text for row in result.rows if row.send]
    assert texts == ["you, 0, 10", "Anna &amp; {x}, 1, 15"]
    assert (result.rows[-1].outcome, "is none of first, second" in result.rows[-1].why) == ("failed", True)


def test_the_check_names_unknown_variables_wrong_values_and_reading_too_early(tmp_path: Path) -> None:
    actions = """
    - {type: set, variables: {person.nmae: x}}
    - {type: set, variables: {person.course: third}}
    - {type: send, text: "{person.agee}", chain: completed}
    - {type: send, text: "{person.name}"}
    - {type: send, text: "{person.rooms.0} {run.total}", chain: true}
"""
    found = problems(folder(tmp_path, actions))
    assert [code for code, _ in found] == ["UNKNOWN_VARIABLE", "WRONG_TYPE", "UNKNOWN_VARIABLE", "STALE_VARIABLE"]
    assert "did you mean person.name?" in found[0][1]


def test_the_check_explains_wrong_declarations(tmp_path: Path) -> None:
    declared = "person: {a: textt, b: choice, c: {type: number, default: x}, d: {expire: soon}}\npersons: {}\n"
    found = problems(folder(tmp_path, "    - {type: send, text: x}", declared))
    assert [code for code, _ in found] == [
        "WRONG_TYPE",
        "MISSING_FIELD",
        "WRONG_TYPE",
        "WRONG_TYPE",
        "UNKNOWN_SECTION",
    ]
