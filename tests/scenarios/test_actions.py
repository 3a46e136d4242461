"""The declarations of the actions: of modules and of entry points, and the JSON Schema that is made from them."""

import re
from datetime import UTC, timedelta
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest
import yaml

from core.errors import Invalid
from scenarios.actions import installed_actions, own_actions
from scenarios.bot import Action, Bot, Place, new_bot
from scenarios.check import check
from scenarios.engine import Ending, State, Step, Values, completed
from scenarios.placeholders.attributes import Prepared
from scenarios.rehearsal import RehearsedStep, play
from scenarios.schema import ActionType, Attributes, Own, Seen
from scenarios.schema.attributes import Count, Duration, Text
from scenarios.schema.reference import scenario_schema, section
from scenarios.schema.rules import CHECKS, RULES

PACKAGE = "tests.scenarios.test_actions"

DICE = ActionType("dice", "Throws dice.")
SEND_AGAIN = ActionType("send", "Another send.")


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "ada.actions")


def test_every_action_of_the_dialect_is_declared() -> None:
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
        "form",
        "group",
        "reserve",
        "http_request",
        "cancel",
        "choose_addressees",
        "follow_delivery",
        "link_contact",
        "order",
        "settings_link",
        "pass_on",
        "sign_in_link",
        "unlink_contact",
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


# one declaration


class RollAttributes(Attributes, frozen=True):
    sides: Annotated[Count, Seen("How many sides.", default=6)] = None
    name: Annotated[Text, Own("Who throws.")] = "nobody"
    until: Annotated[Duration, Seen("Until when.", together=("until", "sides"))] = timedelta(hours=1)
    chat: Annotated[Text, Seen(key="chat_id")] = ""


def roll(step: RehearsedStep, written: RollAttributes) -> Ending:
    return completed({"rolled": f"{written.name}: {written.sides or 6}"})


ROLL = ActionType("roll", "Rolls.", RollAttributes, returns={"rolled": "what was rolled"}, rehearse=roll)


@pytest.mark.parametrize(
    ("own", "seen", "expected"),
    [
        ({}, {}, RollAttributes()),
        ({"sides": "8"}, {"sides": 20}, RollAttributes(sides=20)),
        ({"name": " Anna "}, {"name": "Boris"}, RollAttributes(name="Anna")),
        ({"name": ""}, {}, RollAttributes()),
        ({}, {"until": "2m", "chat_id": 7}, RollAttributes(until=timedelta(minutes=2), chat="7")),
        ({"sides": 4}, {"until": "2m", "sides": 4}, RollAttributes(sides=4)),
    ],
)
def test_attributes_are_read_where_they_are_declared_to_be(
    own: dict[str, Any], seen: dict[str, Any], expected: RollAttributes
) -> None:
    assert ROLL.converted(Prepared(own, {**own, **seen}, Values()), UTC) == expected


@pytest.mark.parametrize(
    ("seen", "detail"),
    [
        ({"sides": 0}, "sides: '0' is not a whole number above 0"),
        ({"until": "soon"}, "until: 'soon' is not a duration"),
    ],
)
def test_an_attribute_that_cannot_be_read_is_refused(seen: dict[str, Any], detail: str) -> None:
    with pytest.raises(Invalid, match="^" + re.escape(detail)):
        ROLL.converted(Prepared({}, seen, Values()), UTC)


def test_the_reference_and_a_rehearsal_come_from_the_same_declaration() -> None:
    page = section(ROLL)
    assert "| `sides` | a whole number above 0 | `6` | How many sides. |" in page
    assert "| `until` | a duration, for example 1h 30m | `1h` | Until when. |" in page
    assert "chat" not in page
    prepared = Prepared({"name": "Anna"}, {"sides": 20}, Values())
    step = Step((0, 0), "a.b", Action("roll", {}, Place("a.yaml")), State.PENDING)
    played = play(RehearsedStep(Bot(), ROLL, step, {}, prepared))
    assert played is not None
    assert played.returned.results == {"rolled": "Anna: 20"}
