"""The declarations of the actions: found by file and by entry point, and the JSON Schema that is made from them."""

from importlib.metadata import EntryPoint
from pathlib import Path

import jsonschema
import pytest
import yaml

from scenarios.actions import installed_actions, own_actions
from scenarios.bot import new_bot
from scenarios.check import check
from scenarios.schema import ActionType
from scenarios.schema.json_schema import scenario_schema
from scenarios.schema.rules import RULES
from scenarios.schema.validator import CHECKS

PACKAGE = "tests.scenarios.test_actions"

DICE = ActionType("dice", "Throws dice.")
SEND_AGAIN = ActionType("send", "Another send.")


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "ada.actions")


def test_every_action_of_the_dialect_has_a_file() -> None:
    dialect = (
        "send remove user scenario validator request request_management restrict invite_link to_speech from_speech "
        "completion gigachat create_promo modify_promo check_promo promo_management"
    )
    assert set(own_actions()) == {
        *dialect.split(),
        "branch",
        "set",
        "ask",
        "for_each",
        "http_request",
        "cancel",
        "job",
        "answer_inline",
        "answer_join",
        "copy",
        "history",
        "answer_press",
        "qr_code",
        "typing",
    }


def test_a_field_has_one_declaration_and_a_help_that_is_a_sentence() -> None:
    for kind in own_actions().values():
        assert len(set(kind.field_names())) == len(kind.field_names())
        assert kind.help.endswith(".")
        assert all(field.help.endswith((".", "`")) for field in kind.fields)


def test_an_installed_package_adds_an_action_by_an_entry_point() -> None:
    assert installed_actions([point("dice", f"{PACKAGE}:DICE")]).types["dice"] == DICE


def test_a_package_that_cannot_be_used_is_named_and_the_rest_works() -> None:
    points = [
        point("gone", "no.such.module:ACTION"),
        point("wrong", f"{PACKAGE}:PACKAGE"),
        point("send", f"{PACKAGE}:SEND_AGAIN"),
        point("dice", f"{PACKAGE}:DICE"),
    ]
    actions = installed_actions(points)
    assert set(actions.broken) == {"gone", "wrong", "send"}
    assert set(actions.types) == {*own_actions(), "dice"}
    assert actions.types["send"].help != SEND_AGAIN.help


def test_the_rules_that_the_check_knows_are_those_that_the_validator_has() -> None:
    assert {*CHECKS, "is_member"} == set(RULES)


def schema_errors(text: str) -> list[str]:
    validator = jsonschema.Draft202012Validator(scenario_schema(own_actions().values()))
    return [error.json_path for error in validator.iter_errors(yaml.safe_load(text))]


def test_the_schema_for_editors_accepts_the_files_of_a_new_bot(tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(scenario_schema(own_actions().values()))
    for name, text in new_bot.FILES.items():
        if name.startswith("scenarios/"):
            assert schema_errors(text) == []
    new_bot.write(tmp_path / "bot")
    assert check(tmp_path / "bot", {}).problems == ()


@pytest.mark.parametrize(
    ("action", "path"),
    [
        ("{type: sned}", "$.start.actions[0].type"),
        ("{text: x}", "$.start.actions[0]"),
        ("{type: send, callback_edit: maybe}", "$.start.actions[0].callback_edit"),
        ("{type: send, inline: [Yes]}", "$.start.actions[0].inline"),
        ("{type: scenario}", "$.start.actions[0]"),
        ("{type: validator, rules: {a: [{rule: none}]}}", "$.start.actions[0].rules"),
    ],
)
def test_the_schema_for_editors_refuses_mistakes(action: str, path: str) -> None:
    assert schema_errors(f"start: {{actions: [{action}]}}") == [path]


@pytest.mark.parametrize("text", ["", "start:\n", "start: {}\n", "start: {actions: []}\n", "start: {actions: {}}\n"])
def test_the_schema_for_editors_accepts_empty_scenarios(text: str) -> None:
    assert schema_errors(text) == []
