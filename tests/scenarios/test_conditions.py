"""Conditions of actions, and the cases of a branch."""

from pathlib import Path
from typing import Any

import pytest

from scenarios.actions import Actions, own_actions
from scenarios.check import check
from scenarios.schema.conditions import unmet
from tests.scenarios.loader.folder import with_russian, write
from tests.scenarios.test_dry_run import Folder, bot

__all__ = ["bot"]

TEACHER = {"role": {"rule": "equals", "value": "teacher"}}
RICH = {"money": {"rule": "at_least", "value": 1000}}


@pytest.mark.parametrize(
    ("condition", "values", "reason"),
    [
        (None, {}, ""),
        (TEACHER, {"role": "teacher"}, ""),
        (TEACHER, {}, "role: equals does not hold"),
        ({**TEACHER, **RICH}, {"role": "teacher", "money": 5}, "money: at_least does not hold"),
        ({"money": [{"rule": "not_empty"}, {"rule": "less_than", "value": 9}]}, {"money": "8"}, ""),
        ({"user.age": {"rule": "between", "value": [18, 30]}}, {"user": {"age": 18}}, ""),
        ({"any": [TEACHER, RICH]}, {"money": 1000}, ""),
        ({"any": [TEACHER, RICH]}, {}, "none of: role: equals does not hold; money: at_least"),
        ({"all": [TEACHER, {"not": RICH}]}, {"role": "teacher", "money": 1}, ""),
        ({"not": TEACHER}, {"role": "teacher"}, "what `not` names holds"),
        ({"not": {"any": [TEACHER, RICH]}}, {"money": 2000}, "what `not` names holds"),
        ({"any": []}, {}, "none of"),
        ({"money": {"rule": "at_least", "value": 1}}, {"money": "much"}, "not both numbers or both dates"),
    ],
)
def test_a_condition_holds_or_names_the_first_reason(condition: Any, values: dict[str, Any], reason: str) -> None:
    found = str(unmet(condition, values))
    assert found.startswith(reason) or reason in found
    assert bool(found) == bool(reason)


@pytest.mark.parametrize(("money", "sent"), [("2000", ["rich", "always"]), ("7", ["poor", "always"])])
def test_the_action_after_a_skipped_one_is_the_other_case(bot: Folder, money: str, sent: list[str]) -> None:
    bot.actions("""
    - {type: send, text: rich, when: {event_text: {rule: more_than, value: 1000}}}
    - {type: send, text: poor, chain: drop}
    - {type: send, text: always}
""")
    rows = bot.play(event_text=money)
    assert [row["send"]["text"] for row in rows if row["outcome"] == "completed"] == sent
    if money == "7":
        assert rows[0]["why"].endswith("event_text: more_than does not hold")


@pytest.mark.parametrize(
    ("text", "sent"), [("Kazan", ["in Kazan", "end"]), ("12.12.2026", ["late", "end"]), ("?", ["other", "end"])]
)
def test_a_branch_goes_on_with_the_first_case_that_holds(bot: Folder, text: str, sent: list[str]) -> None:
    bot.write("triggers.yaml", 'text: {"*": s.main}')
    bot.write(
        "scenarios/s.yaml",
        """
main:
  actions:
    - type: branch
      cases:
        - {when: {event_text: {rule: equals, value: Kazan}}, scenario: kazan}
        - {when: {event_text: {rule: more_than, value: 01.12.2026}}, scenario: late}
      otherwise: other
    - {type: send, text: end, chain: completed}
kazan: {actions: [{type: send, text: "in {event_text}"}]}
late: {actions: [{type: send, text: late}]}
other: {actions: [{type: send, text: other}]}
""",
    )
    rows = bot.play(event_text=text)
    assert [row["send"]["text"] for row in rows if row["send"]] == sent


def test_a_branch_without_a_case_that_holds_ends_as_drop(bot: Folder) -> None:
    bot.actions("""
    - {type: branch, cases: [{when: {event_text: {rule: equals, value: a}}, scenario: main}]}
    - {type: send, text: none, chain: drop}
""")
    rows = bot.play(event_text="b")
    assert [(row["type"], row["outcome"]) for row in rows] == [("branch", "drop"), ("send", "completed")]


@pytest.mark.parametrize(
    ("action", "code", "words"),
    [
        ("{type: send, text: x, when: rich}", "WRONG_TYPE", "a condition is a mapping from fields to rules"),
        ("{type: send, text: x, when: {user_id: {rule: eqals, value: 1}}}", "WRONG_TYPE", "did you mean equals?"),
        ("{type: send, text: x, when: {user_id: {rule: at_least}}}", "WRONG_TYPE", "at_least needs a value"),
        ("{type: send, text: x, when: {usr_id: {rule: empty}}}", "UNKNOWN_RULE_FIELD", "did you mean user_id?"),
        ("{type: send, text: x, when: {not: {any: [{usr_id: {rule: empty}}]}}}", "UNKNOWN_RULE_FIELD", "mean user_id?"),
        ("{type: send, text: x, when: {not: [{user_id: {rule: empty}}]}}", "WRONG_TYPE", "`not` has one condition"),
        ("{type: send, text: x, when: {user_id: {rule: is_member}}}", "WRONG_TYPE", "use is_member in a validator"),
        ("{type: send, text: x, when: {user_id: {rule: empty, on_error: pass}}}", "WRONG_TYPE", "on_error belongs"),
        ("{type: branch}", "MISSING_FIELD", "branch needs cases"),
        ("{type: branch, cases: main}", "WRONG_TYPE", "must be a list of {when, scenario}"),
        ("{type: branch, cases: [{when: {user_id: {rule: empty}}}]}", "WRONG_TYPE", "this case names no scenario"),
        ("{type: branch, cases: [{scenario: mian}]}", "UNKNOWN_SCENARIO", "did you mean main?"),
        ("{type: branch, cases: [{scenario: main}], otherwise: mian}", "UNKNOWN_SCENARIO", "did you mean main?"),
    ],
)
def test_a_mistake_in_a_condition_is_one_message(tmp_path: Path, action: str, code: str, words: str) -> None:
    files = {"triggers.yaml": 'text: {"*": main}\n', "scenarios/s.yaml": f"main:\n  actions:\n    - {action}\n"}
    problems = with_russian(check(write(tmp_path, files), {}, Actions(own_actions())).problems)
    errors = [one for one in problems if one.code == code]
    assert len(errors) == 1, problems
    assert words in errors[0].message
