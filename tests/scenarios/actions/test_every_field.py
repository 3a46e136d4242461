"""Placeholders are replaced in every field of every action, whatever its type (C-103), and a field in which they leave
nothing is refused, unless its declaration says that it may be empty.
"""

from datetime import UTC

import pytest

from core.errors import Refused
from scenarios.actions import own_actions
from scenarios.bot import Action, Place
from scenarios.bot.data import Data
from scenarios.engine import Values
from scenarios.placeholders.attributes import prepare
from scenarios.schema.attributes import Field
from scenarios.schema.declaration import COMMON_FIELDS, ActionType
from scenarios.schema.rules import RULE_ENTRIES

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


EMPTY: dict[str, Data] = {"gap": "", "nothing": []}
LEAVES_NOTHING: list[Data] = ["{gap}", " {gap}{gap} ", "{unknown|fallback:}", "{nothing}", ["{gap}", ["{gap}"]]]
DANGEROUS = {
    "send": ("to", "channels", "delay", "deliver_at", "tag", "limited_in", "audience", "answer"),
    "order": ("to", "channels", "deliver_at", "audience", "answer"),
    "ask": ("options", "rules", "save", "timeout"),
    "cancel": ("tag",),
    "remove": ("remove_message_id",),
    "create_promo": ("user_id", "expired_at", "expire"),
    "modify_promo": ("user_id", "promo_id"),
    "promo_management": ("user_id", "promo_code"),
    "branch": ("cases", "otherwise"),
    "job": ("kind", "user", "state"),
    "form": ("row",),
    "restrict": ("duration", "restrict_user_id"),
}
"""Fields whose default means somebody else, everybody, at once or for ever."""

NEEDED = {
    "send": (("to", "value"),),
    "ask": (("rules", "value"), ("dates", "from"), ("dates", "to"), ("times", "day"), ("times", "every")),
    "branch": (("cases", "value"),),
    "set": (("variables", "append"), ("variables", "if_empty")),
    "validator": (("rules", "value"), ("rules", "chat"), ("rules", "target_user")),
}
"""Entries within fields without which a rule, a question or a reservation means something else."""


@pytest.mark.parametrize("kind", own_actions().values(), ids=lambda kind: kind.name)
@pytest.mark.parametrize("written", LEAVES_NOTHING, ids=str)
def test_a_field_without_a_value_is_refused_or_may_be_empty(kind: ActionType, written: Data) -> None:
    for field in of_its_own(kind):
        code = refusal_of(kind, {field.name: written})
        assert (code == "FIELD_EMPTY") is not field.may_be_empty, (field.name, code)


@pytest.mark.parametrize("kind", own_actions().values(), ids=lambda kind: kind.name)
@pytest.mark.parametrize("written", [None, "", []], ids=str)
def test_a_field_that_is_empty_in_the_file_is_not_written(kind: ActionType, written: Data) -> None:
    for field in of_its_own(kind):
        assert refusal_of(kind, {field.name: written}) != "FIELD_EMPTY", field.name


@pytest.mark.parametrize("kind", own_actions().values(), ids=lambda kind: kind.name)
def test_a_condition_without_a_value_is_refused(kind: ActionType) -> None:
    assert refusal_of(kind, {"when": "{gap}"}) == "FIELD_EMPTY"


@pytest.mark.parametrize("kind", own_actions().values(), ids=lambda kind: kind.name)
@pytest.mark.parametrize("written", ["{gap}", ["{gap}"]], ids=str)
def test_no_rule_day_or_time_may_be_left_empty(kind: ActionType, written: Data) -> None:
    """`to: {people: true, when: {person.course: {rule: equals, value: "{person.course}"}}}` of a person without a
    course was sent to all people without one.
    """
    fields = {field.name: field.type.needed for field in of_its_own(kind)} | {"when": RULE_ENTRIES}
    for name, entries in fields.items():
        for entry in entries:
            inner: Data = {"person.course": {"rule": "equals", entry: written}}
            for field in (inner, {"when": {"any": [inner]}}, [{"when": inner}]):
                assert refusal_of(kind, {name: field}) == "FIELD_EMPTY", (name, entry)
            assert refusal_of(kind, {name: {"person.course": {"rule": "equals", entry: ""}}}) != "FIELD_EMPTY"


@pytest.mark.parametrize(("action", "name", "entry"), [(action, *one) for action in NEEDED for one in NEEDED[action]])
def test_what_compares_chooses_or_reserves_needs_its_value(action: str, name: str, entry: str) -> None:
    field = own_actions()[action].field(name)
    assert field is not None
    assert entry in field.type.needed


@pytest.mark.parametrize(("action", "name"), [(action, name) for action in DANGEROUS for name in DANGEROUS[action]])
def test_no_field_may_be_empty_whose_default_reaches_further(action: str, name: str) -> None:
    field = own_actions()[action].field(name)
    assert field is not None
    assert not field.may_be_empty


def refusal_of(kind: ActionType, fields: dict[str, Data]) -> str:
    prepared = prepare(Action(kind.name, fields, place=Place("s.yaml")), kind.section({}), Values(EMPTY), EVENT)
    try:
        kind.converted(prepared, UTC)
    except Refused as refusal:
        return refusal.code
    return ""


def of_its_own(kind: ActionType) -> list[Field]:
    return [field for field in kind.fields if not is_common(field.name)]


def is_common(name: str) -> bool:
    return any(field.name == name for field in COMMON_FIELDS)
