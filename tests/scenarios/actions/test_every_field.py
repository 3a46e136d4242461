"""Placeholders are replaced in every field of every action, whatever its type (C-103)."""

import pytest

from scenarios.actions import own_actions
from scenarios.bot import Action, Place
from scenarios.bot.data import Data
from scenarios.engine import Values
from scenarios.placeholders.attributes import prepare
from scenarios.schema.declaration import COMMON_FIELDS, ActionType

VALUES = Values({"result": "12:30"}, {"person": {"name": "007"}})
EVENT: dict[str, Data] = {"bio": "yes", "initiator_user_id": 7}
WRITTEN: Data = ["{result}", {"{person.name}": "a {bio}", "inner": [["{initiator_user_id}"]]}, "{initiator_user_id}"]
RENDERED: Data = ["12:30", {"007": "a yes", "inner": [[7]]}, 7]
ACTIONS_OF_THEIR_OWN = {"on_failure", "otherwise"}
"""They have actions, which are prepared when they run."""


@pytest.mark.parametrize("kind", own_actions().values(), ids=lambda kind: kind.name)
def test_placeholders_are_replaced_in_every_field(kind: ActionType) -> None:
    fields = {field.name: WRITTEN for field in kind.fields if not is_common(field.name)}
    prepared = prepare(Action(kind.name, fields, place=Place("s.yaml")), kind.section({}), VALUES, EVENT)
    assert {name: prepared.own[name] for name in fields} == dict.fromkeys(fields, RENDERED)


def is_common(name: str) -> bool:
    return any(field.name == name for field in COMMON_FIELDS)
