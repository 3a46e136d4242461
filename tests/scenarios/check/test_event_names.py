"""A placeholder for what an event does not have is found, whatever the field and the kind of the event (C-103). The
events are the least that Telegram, a schedule, an answer and a reply send.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from couriers.telegram_bot.events import merge, read_arrival
from scenarios.actions import Actions, own_actions
from scenarios.bot import OF_GROUPS, SECTIONS, Place
from scenarios.bot.event_fields import FIELDS, with_derived
from scenarios.bot.times import Schedule
from scenarios.check import check
from scenarios.execution.schedules import event_of
from scenarios.schema import ActionType
from tests.scenarios.loader.folder import Files, write

NOW = datetime(2026, 11, 29, tzinfo=UTC)
AT = 1_763_712_000
ANNA = {"id": 5, "is_bot": False, "first_name": "Anna"}
PRIVATE, GROUP = {"id": 5, "type": "private"}, {"id": -1, "type": "group", "title": "Club"}
WRITTEN = {"message_id": 3, "date": AT, "chat": PRIVATE, "from": ANNA, "text": "a"}
IN_GROUP = {"message_id": 3, "date": AT, "chat": GROUP, "from": ANNA}
MEMBER = {"user": ANNA, "status": "member"}
CHANGE = {"chat": GROUP, "from": ANNA, "date": AT, "old_chat_member": MEMBER}
UPDATES: dict[str, dict[str, Any]] = {
    "text": {"message": WRITTEN},
    "edited": {"edited_message": {**WRITTEN, "edit_date": AT}},
    "callback": {"callback_query": {"id": "1", "from": ANNA, "message": WRITTEN, "data": "x"}},
    "inline_query": {"inline_query": {"id": "1", "from": ANNA, "query": "x"}},
    "join_request": {"chat_join_request": {"chat": GROUP, "from": ANNA, "date": AT}},
    "new_member": {"message": {**IN_GROUP, "new_chat_members": [ANNA]}},
    "left_member": {"message": {**IN_GROUP, "left_chat_member": ANNA}},
    "changed_member": {"chat_member": {**CHANGE, "new_chat_member": {"user": ANNA, "status": "administrator"}}},
}
OF_A_DELIVERY = {"id": "1", "channel": "sms", "user_id": "+7", "chat_id": "+7", "event_text": "x", "event_date": "x"}
OF_AN_ANSWER = {"answer_value": 1, "answer_state": "answered", "answer_by": "press", "delivery_id": "1"}
OF_A_REPLY = {"thread_id": "1", "thread_inbox": "user:1", "delivery_id": "1", "delivery_text": "x"}
DAILY = Schedule("daily", "start", Place("schedule.yaml"), "9:00")
EVENTS: dict[str, dict[str, Any]] = {
    **{kind: {} for kind in UPDATES},
    "answer": {"kind": "answer", **OF_A_DELIVERY, **OF_AN_ANSWER, "delivery_text": "x"},
    "reply": {"kind": "reply", **OF_A_DELIVERY, **OF_A_REPLY},
    "schedule": event_of(DAILY, NOW, {"channel": "sms", "user_id": "+7", "chat_id": "+7"}, UTC),
}
NAMED = ("NOT_OF_TRIGGER", "NOT_OF_SCHEDULE", "MAY_BE_MISSING")
TESTS = "{type: branch, cases: [{when: {directory_id: {rule: not_empty}}, scenario: start}]}"
SPLICES = f"other: {{actions: [{TESTS}]}}\n"
BOTH = "r: {each: day 9:00, for: people, scenario: start}\n"
OF_ADA = {"source", "channel", "language"}
"""Fields that each event gets on its way."""


def event(kind: str) -> dict[str, Any]:
    if kind not in UPDATES:
        return with_derived(EVENTS[kind], "ru")
    arrival = read_arrival({"update_id": 1, **UPDATES[kind]}, NOW)
    assert arrival is not None
    return with_derived(merge(arrival.gathered_as, [arrival.event]) if arrival.gathered_as else arrival.event, "ru")


def started_by(kind: str) -> Files:
    if kind == "schedule":
        return {"schedule.yaml": "daily: {each: day 9:00, for: people, scenario: start}\n"}
    trigger = "default" if "default" in SECTIONS[kind] else "'*'"
    file = "group_triggers.yaml" if kind in OF_GROUPS else "triggers.yaml"
    return {file: f"{kind}: {{{trigger}: start}}\n"}


def warned(folder: Path, files: Files, placeholder: str = "{%s}") -> set[str]:
    """Return the fields of events of which the check says that they are not there."""
    texts = "".join(f"    - {{type: send, text: '{placeholder % name}'}}\n" for name in FIELDS)
    write(folder, {"scenarios/menu.yaml": f"start:\n  actions:\n{texts}", **files})
    found = check(folder, {}, Actions(own_actions())).problems
    names = (*FIELDS,)
    return {names[one.line - 3] for one in found if one.code in NAMED}


@pytest.mark.parametrize("kind", EVENTS)
def test_each_field_that_an_event_lacks_is_named_and_no_other(tmp_path: Path, kind: str) -> None:
    assert warned(tmp_path, started_by(kind)) == FIELDS.keys() - event(kind).keys() - OF_ADA


@pytest.mark.parametrize("kind", EVENTS)
def test_with_a_fallback_nothing_is_named(tmp_path: Path, kind: str) -> None:
    assert warned(tmp_path, started_by(kind), "{%s|fallback:-}") == set()


def test_every_kind_of_event_is_tested() -> None:
    assert {*EVENTS} == {*SECTIONS, "schedule"}


@pytest.mark.parametrize("kind", own_actions().values(), ids=lambda kind: kind.name)
def test_a_result_that_needs_a_field_is_named_without_it(tmp_path: Path, kind: ActionType) -> None:
    needed = [name for name, meaning in kind.returns.items() if meaning.startswith("with `")]
    assert {*kind.returns_with} <= {*kind.returns}
    for name in needed:
        field = kind.returns[name].split("`")[1]
        if name not in kind.returns_with:
            assert field == "audience", "the number is there without it, too"
            continue
        assert "UNKNOWN_PLACEHOLDER" in codes_of(tmp_path / "without", kind.name, "", name)
        assert "UNKNOWN_PLACEHOLDER" not in codes_of(tmp_path / "with", kind.name, f", {field}: x", name)


def codes_of(folder: Path, action: str, fields: str, name: str) -> list[str]:
    actions = f"[{{type: {action}{fields}}}, {{type: send, text: '{{{name}}}', chain: completed}}]"
    write(folder, {"scenarios/menu.yaml": f"start: {{actions: {actions}}}\n", "triggers.yaml": "text: {'*': start}\n"})
    return [one.code for one in check(folder, {}, Actions(own_actions())).problems]


@pytest.mark.parametrize(
    ("files", "text", "named"),
    [
        ({"schedule.yaml": "r: {each: day 9:00, for: {group: A}, scenario: start}\n"}, "{directory_id}", []),
        (
            {"schedule.yaml": "r: {each: day 9:00, for: people, scenario: start}\n"},
            "{directory_id}",
            ["MAY_BE_MISSING"],
        ),
        ({"triggers.yaml": "text: {'*': start}\n"}, "{directory_id}", ["MAY_BE_MISSING"]),
        ({"triggers.yaml": "text: {'*': other}\n", "scenarios/o.yaml": SPLICES}, "{directory_name}", []),
        ({"group_triggers.yaml": "text: {'*': start}\n"}, "{chat_title}", []),
        ({"triggers.yaml": "text: {'*': start}\n"}, "{chat_title}", ["MAY_BE_MISSING"]),
        ({"triggers.yaml": "text: {'*': start}\n", "schedule.yaml": BOTH}, "{event_text}", ["NOT_OF_TRIGGER"]),
    ],
)
def test_where_a_field_is_always_there_or_tested_nothing_is_named(
    tmp_path: Path, files: Files, text: str, named: list[str]
) -> None:
    write(tmp_path, {"scenarios/menu.yaml": f"start: {{actions: [{{type: send, text: '{text}'}}]}}\n", **files})
    codes = [one.code for one in check(tmp_path, {}, Actions(own_actions())).problems]
    assert [one for one in codes if one in NAMED] == named
