"""Bots of Coreness 1.x are converted; what cannot be is named by file and line (C-101)."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main
from scenarios.converter import convert
from scenarios.converter.actions import ConditionRefused, condition
from tests.scenarios.loader.folder import with_russian, write

MENU = """
start:
  trigger:
    - {event_type: message, event_text: /start}
    - {event_type: callback, callback_data: start}
  step:
    - {action: execute_scenario, params: {scenario: check_open}}
    - action: send_message
      params:
        text: "Hello! Your name: {_cache.stored_name|fallback:{_cache.other|fallback:unknown}}"
        inline: [[{Change the name: ask_name}, {Site: "https://example.com"}]]
check_open:
  step:
    - action: validate
      params: {condition: "$event_text != '/start closed' and not $event_text ~ 'secret'"}
      transition:
        - {action_result: success, transition_action: continue}
        - {action_result: failed, transition_action: jump_to_scenario, transition_value: closed}
closed:
  trigger:
    - {event_type: message, condition: "$event_text ~ 'closed'"}
  step:
    - action: send_message
      params: {text: It is closed.}
      transition: [{action_result: any, transition_action: abort}]
"""
NAMES = """
ask_name:
  schedule: "0 9 * * *"
  trigger: [{event_type: callback, callback_data: ask_name}]
  step:
    - {action: send_message, params: {text: What is your name?, message_edit: true}}
    - {action: set_user_state, params: {state: naming, expires_in_seconds: 300}}
save_name:
  trigger: [{event_type: message, user_state: naming}]
  step:
    - action: validate
      params: {condition: '$event_text regex "^[A-Z]"'}
      transition: [{action_result: failed, transition_action: jump_to_scenario, transition_value: bad_name}]
    - {action: clear_user_state}
    - {action: set_user_storage, params: {key: name, value: "{event_text}"}}
    - {action: get_user_storage, params: {key: name, _response_key: stored_name}}
    - action: send_message
      params: {text: "Noted: {_cache.stored_name}"}
      transition: [{action_result: error, transition_action: jump_to_scenario, transition_value: bad_name}]
    - {action: send_message, params: {text: Thank you.}}
bad_name:
  step: [{action: send_message, params: {text: With a capital letter.}}]
"""
PLAYED = """
a name is asked until it fits, and remembered:
  steps:
    - user: /start
    - bot: {contains: "Your name: unknown", buttons: [Change the name, Site]}
    - press: Change the name
    - bot: What is your name?
    - user: anna
    - bot: With a capital letter.
    - user: Anna
    - bot: "Noted: Anna"
    - bot: Thank you.
    - user: /start
    - bot: {contains: "Your name: Anna"}
what is closed ends the scenario that asked:
  steps:
    - user: it is closed
    - bot: It is closed.
"""
FILES = {"scenarios/main/menu.yaml": MENU, "scenarios/names.yaml": NAMES}


def test_a_converted_bot_has_no_mistakes_and_does_what_it_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = write(tmp_path / "old", FILES), tmp_path / "new"
    assert main(["scenarios", "convert", str(old), "--to", str(new), "--json"]) == 0
    assert main(["scenarios", "check", str(new), "--json"]) == 0
    assert capsys.readouterr().out == ""
    write(new, {"tests/names.yaml": PLAYED})
    assert main(["scenarios", "test", str(new)]) == 0, capsys.readouterr().out


def test_the_answer_to_a_press_is_converted_if_it_has_a_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
pressed:
  trigger: [{event_type: callback, callback_data: pressed}, {event_type: message, event_text: /start}]
  step:
    - {action: answer_callback_query, params: {text: "Hello, {first_name}", show_alert: true}}
    - {action: answer_callback_query, params: {}}
    - {action: send_message, params: {text: Done, inline: [[{Again: pressed}]]}}
"""
    new = tmp_path / "new"
    old = write(tmp_path / "old", {"scenarios/a.yaml": text})
    assert main(["scenarios", "convert", str(old), "--to", str(new), "--json"]) == 0
    assert main(["scenarios", "check", str(new), "--json"]) == 0
    assert capsys.readouterr().out == ""
    (actions,) = [one["actions"] for one in yaml.safe_load((new / "scenarios" / "a.yaml").read_text()).values()]
    assert actions[0] == {"type": "answer_press", "text": "Hello, {first_name}", "alert": True}
    assert [one["type"] for one in actions[1:]] == ["send"]


def test_an_abort_in_a_called_scenario_ends_its_callers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    menu = MENU.replace("event_text: /start}", 'condition: "$event_text ~ start"}').replace("~ start", "~ 'start'")
    old, new = write(tmp_path / "old", {**FILES, "scenarios/main/menu.yaml": menu}), tmp_path / "new"
    main(["scenarios", "convert", str(old), "--to", str(new)])
    played = "t:\n  steps:\n    - user: start with a secret\n    - bot: It is closed.\n"
    write(new, {"tests/names.yaml": played})
    capsys.readouterr()
    assert main(["scenarios", "test", str(new)]) == 0, capsys.readouterr().out


def test_the_steps_after_a_jump_stay_away_also_if_its_scenario_ends_as_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last action of the other scenario ends as `drop`, as does a jump that is not taken."""
    text = """
start:
  trigger: [{event_type: message, event_text: /start}]
  step:
    - action: send_message
      params: {text: One}
      transition: [{action_result: success, transition_action: jump_to_scenario, transition_value: other}]
    - {action: send_message, params: {text: Two}}
other:
  step:
    - {action: send_message, params: {text: Three}}
    - {action: validate, params: {condition: "$event_text == 'never'"}}
"""
    new = tmp_path / "new"
    main(["scenarios", "convert", str(write(tmp_path / "old", {"scenarios/a.yaml": text})), "--to", str(new)])
    write(new, {"tests/a.yaml": "t:\n  steps:\n    - user: /start\n    - bot: One\n    - bot: Three\n"})
    capsys.readouterr()
    assert main(["scenarios", "test", str(new)]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("{action: create_invoice, params: {amount: 1}}", "NO_SUCH_ACTION"),
        ("{action: send_message, params: {text: x, parse_mode: HTML}}", "NO_SUCH_FIELD"),
        ("{action: send_message, params: {text: x, inline: [[{A: nowhere}]]}}", "BUTTON_WITHOUT_TRIGGER"),
        ('{action: send_message, params: {text: x, inline: "{_cache.keyboard}"}}', "BUTTONS_FROM_DATA"),
        ("{action: send_message, params: {text: x, message_edit: 5}}", "EDITS_PRESSED"),
        ("{action: validate, params: {condition: '{a|lower} == 1'}}", "NO_SUCH_CONDITION"),
        ("{action: set_user_storage, params: {values: {a: 1}}}", "NO_SUCH_STORE"),
        ("{action: clear_user_state, transition: [{transition_action: move_steps}]}", "UNKNOWN_TRANSITION"),
        ("text", "NOT_A_STEP"),
    ],
)
def test_what_ada_does_not_have_is_named_with_its_line(tmp_path: Path, step: str, code: str) -> None:
    converted = convert(write(tmp_path, {"scenarios/a.yaml": f"a:\n  step:\n    - {step}\n"}))
    assert [(one.file, one.line, one.code) for one in with_russian(converted.problems)] == [
        ("scenarios/a.yaml", 3, code)
    ]


@pytest.mark.parametrize(
    ("transition", "actions"),
    [
        ("any: abort", [{"type": "send", "text": "x", "chain_drop": True}]),
        ("failed: abort", [{"type": "send", "text": "x", "chain_drop": "failed"}, "y"]),
        ("any: jump", [{"type": "send", "text": "x"}, {"type": "scenario", "name": "b", "chain": True}]),
        (
            "success: jump",
            [
                {"type": "send", "text": "x"},
                {"type": "scenario", "name": "a_2_completed", "chain": "completed"},
                {"type": "scenario", "name": "a_2", "chain": "drop"},
            ],
        ),
        (
            "failed: jump, success: abort",
            [
                {"type": "send", "text": "x", "chain_drop": "completed"},
                {"type": "scenario", "name": "b", "chain": True},
            ],
        ),
    ],
)
def test_transitions_become_chains(tmp_path: Path, transition: str, actions: list[Any]) -> None:
    words = {"abort": "transition_action: abort", "jump": "transition_action: jump_to_scenario, transition_value: b"}
    pairs = [one.split(": ") for one in transition.split(", ")]
    listed = ", ".join(f"{{action_result: {result}, {words[does]}}}" for result, does in pairs)
    text = (
        f"a:\n  step:\n    - {{action: send_message, params: {{text: x}}, transition: [{listed}]}}\n"
        "    - {action: send_message, params: {text: y}}\nb:\n  step: [{action: clear_user_state}]\n"
    )
    converted = convert(write(tmp_path, {"scenarios/a.yaml": text}))
    wanted = [{"type": "send", "text": "y", "chain": True} if one == "y" else one for one in actions]
    assert yaml.safe_load(converted.files["scenarios/a.yaml"])["a"]["actions"] == wanted


def test_a_check_that_ada_cannot_make_lets_nobody_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    menu = MENU.replace("$event_text != '/start closed' and not $event_text ~ 'secret'", "{event_text|lower} == 'x'")
    old, new = write(tmp_path / "old", {**FILES, "scenarios/main/menu.yaml": menu}), tmp_path / "new"
    main(["scenarios", "convert", str(old), "--to", str(new)])
    write(new, {"tests/a.yaml": "t:\n  steps:\n    - user: /start\n    - bot: It is closed.\n"})
    assert "NO_SUCH_CONDITION" in capsys.readouterr().out
    assert main(["scenarios", "test", str(new)]) == 0, capsys.readouterr().out


def test_a_new_scenario_takes_no_name_and_a_trigger_starts_one_scenario(tmp_path: Path) -> None:
    trigger = "  trigger: [{event_type: message, event_text: hi}]\n"
    jump = "[{action_result: failed, transition_action: jump_to_scenario, transition_value: a_2}]"
    check = f"    - {{action: validate, params: {{condition: $x == 1}}, transition: {jump}}}\n"
    step = f"{check}    - {{action: clear_user_state}}\n"
    text = f"a:\n{trigger}  step:\n{step}a_2:\n{trigger}  step: []\n"
    converted = convert(write(tmp_path, {"scenarios/a.yaml": text}))
    assert list(yaml.safe_load(converted.files["scenarios/a.yaml"])) == ["a", "a_2_", "a_2"]
    assert [(one.line, one.code) for one in converted.problems] == [(7, "NO_SUCH_TRIGGER")]
    assert yaml.safe_load(converted.files["triggers.yaml"]) == {"text": {"exact": {"hi": "a"}}}


def test_a_text_of_several_lines_stays_readable(tmp_path: Path) -> None:
    step = '{action: send_message, params: {text: "One: — и\\nTwo\\n"}}'
    converted = convert(write(tmp_path, {"scenarios/a.yaml": f"a:\n  step:\n    - {step}\n"}))
    assert "    text: |\n      One: — и\n      Two\n" in converted.files["scenarios/a.yaml"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$a == 'x'", {"a": {"rule": "equals", "value": "x"}}),
        ("'{_cache.a.b}' != 2.5", {"a.b": {"rule": "not_equals", "value": 2.5}}),
        ("$a !~ 'x'", {"not": {"a": {"rule": "contains", "value": "x"}}}),
        ("$a not in ('x', 2)", {"a": {"rule": "not_in_list", "value": ["x", 2]}}),
        (r"$a regex '^\\d+\.'", {"a": {"rule": "regex", "value": r"^\d+\."}}),
        ("$a is_null", {"a": {"rule": "empty"}}),
        ("$a not is_null", {"a": {"rule": "not_empty"}}),
        ("{a|exists} == False", {"a": {"rule": "empty"}}),
        (
            "$a == 1 or not ($b == True and $c > 3)",
            {
                "any": [
                    {"a": {"rule": "equals", "value": 1}},
                    {
                        "not": {
                            "all": [{"b": {"rule": "equals", "value": True}}, {"c": {"rule": "more_than", "value": 3}}]
                        }
                    },
                ]
            },
        ),
    ],
)
def test_conditions_are_those_of_when(text: str, wanted: dict[str, Any]) -> None:
    assert condition(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "$a", "$a ==", "1 == 1", "$a == $b", "$a == 1 )", "($a == 1", "$a in 5", "$a % 2", "{a|lower} == 'x'"]
)
def test_other_conditions_are_refused_whole(text: str) -> None:
    with pytest.raises(ConditionRefused):
        condition(text)


def test_a_token_is_not_carried_over_and_a_folder_with_files_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bot = "bot_token: '1:secret'\ncommands: [{command: start, description: Menu}]\n"
    old = write(tmp_path / "old", {**FILES, "tg_bot.yaml": bot})
    assert main(["scenarios", "convert", str(old), "--to", str(tmp_path / "new"), "--json"]) == 1
    assert [json.loads(line)["code"] for line in capsys.readouterr().out.splitlines()] == ["TOKEN"]
    written = (tmp_path / "new" / "bot.yaml").read_text()
    assert "secret" not in written
    assert yaml.safe_load(written)["commands"][0]["command"] == "start"
    assert yaml.safe_load((tmp_path / "new" / "schedule.yaml").read_text()) == {
        "ask_name": {"each": "0 9 * * *", "scenario": "ask_name"}
    }
    assert main(["scenarios", "convert", str(old), "--to", str(tmp_path / "new")]) == 1
    assert "is not empty" in capsys.readouterr().err
