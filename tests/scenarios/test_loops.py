"""Loops, and parameters of scenarios that are called by others (C-98)."""

from pathlib import Path

import pytest

from scenarios.check import check
from scenarios.check.dry_run import dry_run
from scenarios.loader import load
from tests.scenarios.bot_folder import BotFolder

SCENARIOS = """
main:
  actions:
    - {type: for_each, items: "{event_text}", scenario: one, as: room, with: {building: "{first_name}"}}
    - {type: scenario, value: greet, with: {greeting: "Hi {event_text}", times: 2}, chain: completed}
    - {type: send, text: "{count}, {said}", chain: completed}
one: {actions: [{type: send, text: "{number}. {room} in {building}"}, {type: send, text: "{room}!", chain: completed}]}
greet:
  actions:
    - {type: validator, said: "{greeting} ({times})", placeholder: true}
    - {type: send, text: "{greeting}", chain: completed}
"""


@pytest.fixture
def bot(tmp_path: Path) -> BotFolder:
    folder = BotFolder(tmp_path).write("triggers.yaml", 'text: {"*": s.main}')
    return folder.write("scenarios/s.yaml", SCENARIOS)


def texts(bot: BotFolder, text: str) -> list[str]:
    result = dry_run(load(bot.folder).bot, {"user_id": 1, "event_text": text, "first_name": "<A> {b}"})
    return [row.send.text for row in result.rows if row.send]


def test_a_loop_and_a_call_hand_over_parameters_as_words_of_people(bot: BotFolder) -> None:
    each = [f"{n}. {room} in &lt;A&gt; {{b}}" for n, room in ((1, "12"), (2, "14 &lt;"))]
    found = texts(bot, "12, 14 <")
    assert found[:4] == [each[0], "12!", each[1], "14 &lt;!"]
    assert found[4:] == ["Hi 12, 14 &lt;", "2, Hi 12, 14 &lt; (2)"]
    assert check(bot.folder).problems == ()


def test_a_loop_is_bounded(bot: BotFolder) -> None:
    result = dry_run(load(bot.folder).bot, {"user_id": 1, "event_text": ",".join(["x"] * 101)})
    assert result.rows[0].why.endswith("there are 101 items, at most 100 are allowed")


def test_an_unknown_scenario_or_parameter_is_reported(bot: BotFolder) -> None:
    bot.write("scenarios/s.yaml", SCENARIOS.replace("{times}", "{tmes}"))
    assert [(one.code, one.line) for one in check(bot.folder).problems] == [("UNKNOWN_PLACEHOLDER", 10)]
    bot.write("scenarios/s.yaml", SCENARIOS.replace("scenario: one", "scenario: oen"))
    assert ("UNKNOWN_SCENARIO", 4) in [(one.code, one.line) for one in check(bot.folder).problems]
