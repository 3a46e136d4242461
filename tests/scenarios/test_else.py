"""What an action says if it fails or does not apply, and steps that a later action names (C-104)."""

from pathlib import Path

import pytest

from scenarios.check import check
from scenarios.check.dry_run import dry_run
from scenarios.loader import load
from tests.scenarios.bot_folder import BotFolder

BOOKING = """
    - type: create_promo
      step: book
      promo_code: WASH-10
      on_failure:
        - {type: send, text: "Taken: {error}", inline: [[{Again: main}]]}
        - {type: send, text: "Another one?", chain: completed}
    - {type: send, text: Booked, chain: completed}
    - type: send
      text: A discount
      when: {event_text: {rule: equals, value: ten}}
      otherwise: [{type: send, text: No discount}]
      after: book
    - {type: send, text: The end, chain: true}
"""


@pytest.fixture
def bot(tmp_path: Path) -> BotFolder:
    return BotFolder(tmp_path).actions(BOOKING)


def texts(bot: BotFolder, text: str, fail: tuple[str, ...] = (), unclear: tuple[str, ...] = ()) -> list[str]:
    result = dry_run(load(bot.folder).bot, {"user_id": 1, "event_text": text, "language_code": "en"}, fail, unclear)
    return [row.send.text for row in result.rows if row.send]


def test_a_failure_runs_its_actions_and_the_chain_goes_on_behind_them(bot: BotFolder) -> None:
    for fail, unclear in ((("create_promo",), ()), ((), ("create_promo",))):
        taken, *others = texts(bot, "ten", fail, unclear)
        assert taken.startswith("Taken: its ")
        assert others == ["Another one?", "The end"]
    assert check(bot.folder).problems == ()


def test_a_named_step_is_waited_for_and_a_condition_that_does_not_hold_has_its_else(bot: BotFolder) -> None:
    assert texts(bot, "ten") == ["Booked", "A discount", "The end"]
    assert texts(bot, "two") == ["Booked", "No discount", "The end"]


def test_the_actions_of_a_failure_stand_behind_it(bot: BotFolder) -> None:
    result = dry_run(load(bot.folder).bot, {"user_id": 1, "event_text": "ten"}, ("create_promo",))
    nodes = [row.node for row in result.rows]
    assert nodes[:3] == ["s.main:1", "s.main:1.on_failure:1", "s.main:1.on_failure:2"]
    assert [row.outcome for row in result.rows] == ["failed", "completed", "completed", "drop", "drop", "completed"]


def test_a_failure_within_a_failure_and_a_scenario_in_it(tmp_path: Path) -> None:
    bot = BotFolder(tmp_path).write("triggers.yaml", 'text: {"*": s.main}')
    bot.write(
        "scenarios/s.yaml",
        """
main:
  actions:
    - type: create_promo
      on_failure:
        - {type: create_promo, promo_code: B, on_failure: [{type: scenario, value: sorry, with: {what: "{error}"}}]}
        - {type: send, text: Outer, chain: failed}
    - {type: send, text: Last, chain: failed}
sorry: {actions: [{type: send, text: "Sorry"}, {type: send, text: "Really", chain: completed}]}
""",
    )
    assert texts(bot, "x", ("create_promo",)) == ["Sorry", "Really", "Outer", "Last"]
    assert check(bot.folder).problems == ()


def test_what_cannot_be_meant_is_an_error_with_its_line(tmp_path: Path) -> None:
    bot = BotFolder(tmp_path).actions("""
    - {type: send, text: a, step: one}
    - {type: send, text: b, step: one, after: on}
    - {type: send, text: c, on_failure: main}
    - {type: send, text: d, on_failure: [{type: sned, text: e}]}
    - {type: send, text: f, on_failure: [{type: scenario, value: main}]}
""")
    found = [(one.line, one.code) for one in check(bot.folder).problems]
    assert found == [
        (5, "DUPLICATE_STEP"), (5, "UNKNOWN_STEP"), (6, "WRONG_TYPE"), (7, "UNKNOWN_ACTION"), (8, "SCENARIO_LOOP"),
    ]  # fmt: skip


def test_buttons_within_a_failure_find_the_scenarios_of_their_file(bot: BotFolder) -> None:
    loaded = load(bot.folder).bot
    assert loaded.short_names == {"main": ("s.main",)}
    again = loaded.scenarios["s.main:1.on_failure"].actions[0].fields["inline"]
    assert again == [[{"Again": "s.main"}]]
