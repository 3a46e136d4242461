"""Places that people hold: `reserve` gives one to as many people as it has room for, and takes it back (C-105)."""

import asyncio
from pathlib import Path

import pytest

from scenarios.check import check
from scenarios.loader import load
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.bot_folder import BotFolder
from tests.scenarios.execution.conftest import Installation, states

SCENARIOS = """
take:
  actions:
    - type: reserve
      kind: washes
      place: "{event_text|regex:/take (.+)}"
      limit: 2
      on_failure: [{type: send, text: "No: {code}"}]
    - {type: send, text: "{place}, {left} left; you: {person.washes}; all: {bot.washes}", chain: completed}
leave:
  actions:
    - {type: reserve, kind: washes, place: "{event_text|regex:/leave (.+)|fallback:all}", release: true}
    - {type: send, text: "You have {places|length}", chain: completed}
    - {type: send, text: "No: {code}", chain: [failed, drop]}
all:
  actions:
    - {type: reserve, kind: washes, release: true}
    - {type: send, text: "All given back", chain: completed}
    - {type: send, text: "No: {code}", chain: [failed, drop]}
"""
TESTS = """
two have room, the third has none until one gives back:
  at: 2026-12-01 09:00
  steps:
    - {user: /take 2026-12-03 10:00, bot: "2026-12-03 10:00, 1 left; you: 2026-12-03 10:00; all: 2026-12-03 10:00"}
    - {user: /take 2026-12-03 10:00, as: 8, bot: {contains: 0 left}}
    - {user: /take 2026-12-03 10:00, as: 9, bot: {contains: PLACE_TAKEN}}
    - {user: /take 2026-12-04 10:00, bot: {contains: PLACES_FULL}}
    - {user: /leave 2026-12-03 10:00, as: 9, bot: {contains: PLACE_NOT_HELD}}
    - {user: /leave 2026-12-03 10:00, bot: You have 0}
    - {user: /take 2026-12-03 10:00, as: 9, bot: {contains: 0 left}}
    - variables: {bot.washes: ["2026-12-03 10:00", "2026-12-03 10:00"], person.washes: []}
    - {user: /all, as: 8, bot: All given back}
    - {user: /all, as: 8, bot: {contains: PLACE_NOT_HELD}}
    - variables: {bot.washes: ["2026-12-03 10:00"]}
a place leaves the lists when its day is over:
  at: 2026-12-01 09:00
  steps:
    - {user: /take 2026-12-03 10:00, bot: {contains: 1 left}}
    - wait: 2d
    - {user: /take 2026-12-04 10:00, bot: {contains: PLACES_FULL}}
    - wait: 1d
    - {user: /take 2026-12-05 10:00, bot: {contains: "you: 2026-12-05 10:00; all: 2026-12-05 10:00"}}
"""
TRIGGERS = "text: {exact: {/all: s.all}, starts_with: {/take: s.take, /leave: s.leave}}"
VARIABLES = "{person: {washes: list}, bot: {washes: list}}"


def test_a_place_is_given_held_given_back_and_over(tmp_path: Path) -> None:
    """`set` with `append` let a person take back what is not its own, and lists grew until nobody could book."""
    bot = BotFolder(tmp_path).write("scenarios/s.yaml", SCENARIOS).write("triggers.yaml", TRIGGERS)
    bot.write("variables.yaml", VARIABLES).write("tests/t.yaml", TESTS)
    assert [one for one in check(bot.folder).problems if one.is_error] == []
    verdicts, problems = asyncio.run(run_tests(bot.folder, load(bot.folder).bot))
    assert ([one.problem for one in verdicts], problems) == (["", ""], [])


@pytest.mark.parametrize("declared", ["{bot: {washes: list}}", "{person: {washes: list}, bot: {washes: text}}"])
def test_the_check_names_a_list_that_is_not_declared(tmp_path: Path, declared: str) -> None:
    bot = (
        BotFolder(tmp_path).actions("    - {type: reserve, kind: washes, place: A}\n").write("variables.yaml", declared)
    )
    (problem,) = [one for one in check(bot.folder).problems if one.is_error]
    assert (problem.code, problem.line) == ("UNKNOWN_VARIABLE", 3)


async def test_of_many_people_at_once_no_more_get_a_place_than_it_has_room_for(installation: Installation) -> None:
    installation.actions("    - {type: reserve, kind: seats, place: A, limit: 3}\n")
    installation.write("variables.yaml", "{person: {seats: list}, bot: {seats: list}}")
    await installation.start()
    runs = [await installation.put("hi", id=f"e{n}", user_id=n) for n in range(1, 13)]
    ended = [states(await installation.over(run))[0] for run in runs]
    assert sorted(ended) == ["completed"] * 3 + ["failed"] * 9
