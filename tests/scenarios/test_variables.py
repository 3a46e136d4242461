"""Variables of a person, of a chat and of a run (C-93): declared, checked, set, and shown in a dry run."""

from datetime import UTC
from pathlib import Path

import pytest

from scenarios.bot.data import Data
from scenarios.bot.model import Variable
from scenarios.check import check
from scenarios.check.dry_run import dry_run
from scenarios.loader import load
from scenarios.schema.variables import VariableFault, applied, change_of, ending_of_changes, fitted
from scenarios.testing.bot_tests import run_tests
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


async def test_variables_of_the_bot_are_shared_and_a_place_is_given_once(tmp_path: Path) -> None:
    """Two people book one slot; the second one is refused until the first gives it back (C-105)."""
    bot = BotFolder(tmp_path).write("variables.yaml", "bot: {taken: list, host: text}\nperson: {slot: text}")
    bot.write("triggers.yaml", 'text: {exact: {back: s.back, host: s.host}, "*": s.main}')
    bot.write(
        "scenarios/s.yaml",
        """
main:
  actions:
    - type: set
      variables: {person.slot: "{event_text}", bot.taken: {append: "{event_text}", times: 1}}
      on_failure: [{type: send, text: "Taken, {person.slot|fallback:nothing}"}]
    - {type: send, text: "{bot.taken|length}: {person.slot}", chain: completed}
back:
  actions:
    - {type: set, variables: {bot.taken: {remove: "{person.slot}"}, person.slot: ""}}
    - {type: send, text: "Free, {bot.taken|length}", chain: completed}
host:
  actions:
    - {type: set, variables: {bot.host: {if_empty: "{user_id}"}}, on_failure: [{type: send, text: "{bot.host} is"}]}
    - {type: send, text: "You are", chain: completed}
""",
    )
    bot.write(
        "tests/t.yaml",
        """
a slot:
  steps:
    - {user: "10:00"}
    - {bot: "1: 10:00"}
    - {user: "10:00", as: 8}
    - {bot: "Taken, nothing"}
    - {user: "11:00", as: 8}
    - {bot: "2: 11:00"}
    - {user: back}
    - {bot: "Free, 1"}
    - {user: "10:00", as: 9}
    - {bot: "2: 10:00"}
    - {user: host, as: 9}
    - {bot: You are}
    - {user: host}
    - {bot: "9 is"}
    - variables: {bot.host: 9}
""",
    )
    verdicts, _ = await run_tests(bot.folder, load(bot.folder).bot)
    assert [(one.name, one.problem) for one in verdicts] == [("a slot", "")]
    assert check(bot.folder).problems == ()


@pytest.mark.parametrize(
    "change", ["{append: a, times: 0}", "{add: 1, times: 1}", "{remove: a, append: b}", "{pop: 1}"]
)
def test_a_change_that_cannot_be_made_is_an_error(tmp_path: Path, change: str) -> None:
    written = folder(tmp_path, f"    - {{type: set, variables: {{bot.l: {change}}}}}\n", "bot: {l: list}")
    assert {code for code, _ in problems(written)} == {"WRONG_TYPE"}
