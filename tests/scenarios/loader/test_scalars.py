"""What an author writes without quotes reaches people as it is written, in every place of every file."""

from pathlib import Path
from typing import Any

import pytest

from scenarios.actions import own_actions
from scenarios.check import check
from scenarios.check.dry_run import dry_run
from scenarios.loader import load
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.loader.folder import loaded, write

WRITTEN = (
    "12:30",
    "1:30:00",
    "+79991234567",
    "007",
    "0123",
    "1.10",
    "1_000",
    "0x1F",
    "0b11",
    "1.0e3",
    "1e3",
    ".5",
    "5.",
    "-0",
    ".inf",
    ".nan",
    "2026-12-01",
    "yes",
    "No",
    "on",
    "TRUE",
    "750",
    "1.5",
    "-5",
)
SCENARIOS = """
a:
  actions:
    - {type: set, variables: {person.text: VALUE, person.list: [VALUE]}}
    - {type: send, chain: completed, text: VALUE, additional_text: VALUE, reply: [[VALUE]]}
    - {type: send, chain: completed, text: "{person.text} {person.list}"}
    - {type: scenario, value: part, with: {parameter: VALUE}}
    - {type: http_request, url: "https://a.example", json: {a: VALUE, b: [VALUE]}}
    - {type: validator, rules: {event_text: [{rule: equals, value: VALUE}]}, own: VALUE}
    - {type: send, text: "held {own}", chain: completed}
    - {type: send, text: "met", when: {event_text: {rule: in_list, value: [VALUE]}}}
    - {type: ask, text: VALUE, options: [VALUE, other], save: person.text}
part: {actions: [{type: send, text: "{parameter}"}]}
"""
FILES = {
    "scenarios/s.yaml": SCENARIOS,
    "triggers.yaml": "text: {exact: {VALUE: s.a}}\n",
    "variables.yaml": "person: {text: text, list: list, default: {type: text, default: VALUE}}\n",
    "bot.yaml": "commands: [{command: a, description: VALUE}]\nroles: {r: {permissions: [VALUE]}}\n",
    "settings.yaml": "send: {additional_text: VALUE}\n",
    "tests/t.yaml": "t: {steps: [{user: VALUE}, {bot: [VALUEVALUE, VALUEVALUE, "
    "held VALUEVALUE, metVALUE, {text: VALUE, buttons: [VALUE, other]}, VALUE VALUEVALUE]}]}\n",
}


@pytest.mark.parametrize("written", WRITTEN)
async def test_what_is_written_reaches_people_as_it_is_written(tmp_path: Path, written: str) -> None:
    files = {name: text.replace("VALUE", written) for name, text in FILES.items()}
    bot = load(write(tmp_path, files), {}).bot
    result = dry_run(bot, {"kind": "text", "user_id": 7, "chat_id": 7, "event_text": written})
    texts = [row.send.text for row in result.rows if row.send]
    twice = written * 2
    assert texts == [twice, f"{written} {twice}", twice, f"held {twice}", f"met{written}", written]
    sent = [row.send for row in result.rows if row.send]
    assert (sent[0].reply, sent[-1].inline[0][0]["text"]) == (((written,),), written)
    (asked,) = (row.given["json"] for row in result.rows if row.type == "http_request")
    assert str(asked) == str({"a": usual(written), "b": [usual(written)]})
    assert bot.declared["person.default"].default == written
    assert (bot.commands[0].description, bot.roles["r"].permissions) == (written, (written,))
    if written in ("007", "1.10", "yes"):
        assert [one.problem for one in (await run_tests(tmp_path, bot))[0]] == [""]
    assert not [one for one in check(tmp_path, {}).problems if one.is_error]


def usual(written: str) -> Any:
    """Return the number of JSON that is written in its usual form."""
    return {"750": 750, "1.5": 1.5, "-5": -5}.get(written, written)


@pytest.mark.parametrize(
    ("written", "number"),
    [("007", 7), ("0x1F", 31), ("0o17", 15), ("+5", 5), ("1.0e3", 1000), ("1e3", 1000), ("1.50", 1.5), ("5", 5)],
)
def test_a_field_that_is_a_number_takes_a_number_of_yaml_1_2(tmp_path: Path, written: str, number: float) -> None:
    actions = f"{{type: completion, user_message: x, temperature: {written}}}"
    bot = loaded(tmp_path, {"scenarios/s.yaml": f"a: {{actions: [{actions}]}}\n"}).bot
    (action,) = bot.scenarios["s.a"].actions
    assert own_actions()["completion"].read(action).fields["temperature"] == number
    assert "WRONG_TYPE" not in [one.code for one in check(tmp_path, {}).problems]


@pytest.mark.parametrize("written", ["12:30", "1_000", "1.5"])
def test_what_is_no_whole_number_is_refused_where_one_is_wanted(tmp_path: Path, written: str) -> None:
    write(tmp_path, {"scenarios/s.yaml": f"a: {{actions: [{{type: invite_link, member_limit: {written}}}]}}\n"})
    assert "WRONG_TYPE" in [one.code for one in check(tmp_path, {}).problems]


@pytest.mark.parametrize(("written", "edits"), [("no", False), ("Off", False), ("false", False), ("YES", True)])
def test_a_flag_takes_the_words_of_yaml_1_1(tmp_path: Path, written: str, edits: bool) -> None:
    """Files of the dialect have `placeholder: yes` and `callback_edit: no`."""
    files = {"scenarios/s.yaml": f"a: {{actions: [{{type: send, text: x, callback_edit: {written}}}]}}\n"}
    (action,) = loaded(tmp_path, files).bot.scenarios["s.a"].actions
    assert own_actions()["send"].read(action).fields["callback_edit"] is edits
