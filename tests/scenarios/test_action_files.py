"""Actions of one's own from a file (C-111)."""

import os
from pathlib import Path

import pytest

from scenarios.check import check
from scenarios.check.dry_run import dry_run
from scenarios.execution.active_bot import ActiveBot
from scenarios.loader import load
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.bot_folder import BotFolder

SLOTS = """
from scenarios.action_files import ActionCall, action


@action(returns={"free": "the slots that are free"})
async def free_slots(call: ActionCall, day: str, most: int = 2) -> dict:
    'Returns the free slots of a day.'
    if day == "never":
        raise ValueError("there is no such day")
    return {"free": [f"{day} {hour}:00 {call.seen['person']['name']}" for hour in (9, 10, 11)][:most]}


@action(name="word")
def blocking(call):
    return {}
"""
ACTIONS = """
    - {type: free_slots, day: "{event_text}", step: slots}
    - {type: word, chain: completed}
    - {type: send, text: "{free|list}", after: slots}
    - {type: send, text: "{error}", after: slots, chain: failed}
"""
TESTS = """
it is really called:
  variables: {person.name: Anna}
  steps:
    - {user: Monday}
    - {bot: "• Monday 9:00 Anna\\n• Monday 10:00 Anna"}
    - {user: never}
    - {bot: "ValueError: there is no such day"}
unless the test says what it returns:
  returns: {free_slots: {free: [none]}}
  steps: [{user: Monday}, {bot: • none}]
"""


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BotFolder:
    file = tmp_path / "slots.py"
    file.write_text(SLOTS)
    monkeypatch.setenv("ADA_ACTIONS", str(file))
    folder = BotFolder(tmp_path / "bot").actions(ACTIONS).write("variables.yaml", "person: {name: text}")
    return folder.write("tests/t.yaml", TESTS)


def change(bot: BotFolder, before: str, after: str) -> None:
    """Write the file as an editor does, so that its time of change is another one."""
    file = bot.folder.parent / "slots.py"
    changed = file.stat().st_mtime_ns
    file.write_text(file.read_text().replace(before, after))
    os.utime(file, ns=(changed + 10**9, changed + 10**9))


async def test_a_function_is_an_action_with_its_parameters_as_fields(bot: BotFolder) -> None:
    assert check(bot.folder).problems == ()
    verdicts, problems = await run_tests(bot.folder, load(bot.folder).bot)
    assert ([one.problem for one in verdicts], problems) == (["", ""], [])
    rows = dry_run(load(bot.folder).bot, {"user_id": 1, "event_text": "Monday"}).rows
    assert rows[0].results == {"free": "[free]"}  # a dry run calls nothing
    bot.actions(ACTIONS.replace("day:", "dya:"))
    assert [one.code for one in check(bot.folder).problems] == ["UNKNOWN_FIELD"]


async def test_a_changed_file_is_in_force_and_a_broken_one_is_named_and_what_was_goes_on(bot: BotFolder) -> None:
    active = ActiveBot(bot.folder)
    change(bot, "{hour}:00", "{hour}:30")
    assert active.has_changed()
    verdicts, _ = await run_tests(bot.folder, active.bot)
    assert "9:30" in verdicts[0].problem
    change(bot, "return {}", "return {")
    (problem,) = check(bot.folder).problems
    assert problem.code == "ACTION_FILE"
    assert "slots.py of ADA_ACTIONS cannot be read: SyntaxError" in problem.message
    assert "9:30" in (await run_tests(bot.folder, active.bot))[0][0].problem
