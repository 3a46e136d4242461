"""The attributes of an action when it runs."""

from typing import Any
from zoneinfo import ZoneInfo

from scenarios.bot import Action, Place
from scenarios.bot.data import Data
from scenarios.engine import Values
from scenarios.placeholders.attributes import Prepared, prepare

EVENT: dict[str, Data] = {"event_text": "<b>hi", "user_id": 7, "first_name": "Anna"}
NOTHING = Values()


def prepared(values: Values = NOTHING, **fields: Any) -> Prepared:
    action = Action("send", fields, Place("scenarios/s.yaml"), placeholder=True)
    return prepare(action, {}, values, EVENT)


def test_an_attribute_with_the_name_of_a_field_takes_the_value_of_the_field() -> None:
    found = prepared(event_text="{event_text}", text="{event_text}!")
    assert found.own == {"event_text": "<b>hi", "text": "&lt;b&gt;hi!"}
    assert found.warnings == ()
    assert "event_text" in found.returned.from_person


def test_an_attribute_may_change_the_field_whose_name_it_has() -> None:
    found = prepared(first_name="{first_name|upper}", text="Hello {first_name}")
    assert found.own["text"] == "Hello ANNA"
    assert found.warnings == ()


def test_what_a_person_wrote_is_not_parsed_after_it_was_passed_on() -> None:
    event = {**EVENT, "event_text": "{user_id}"}
    action = Action("send", {"event_text": "{event_text}", "text": "{event_text}"}, Place("s.yaml"), placeholder=True)
    assert prepare(action, {}, Values(), event).own["text"] == "{user_id}"


def test_a_result_is_stronger_than_an_attribute_of_its_name() -> None:
    found = prepared(Values({"first_name": "Boris"}), first_name="{first_name}", text="{first_name}")
    assert found.own["text"] == "Boris"


def test_people_read_a_moment_in_the_zone_of_the_bot_and_machines_as_it_is() -> None:
    moscow, at = ZoneInfo("Europe/Moscow"), "2026-12-15T09:00:00+00:00"
    fields = {
        "text": "At {at}, {at|format:time}, {at|to_date}: {all}, {day}",
        "tag": "{at}",
        "parse_mode": "MarkdownV2",
    }
    action = Action("send", fields, Place("s.yaml"), placeholder=True)
    values = Values({"at": at, "all": ["2026-12-31T21:30:00Z", "x"], "day": "2026-12-15"})
    own = prepare(action, {}, values, EVENT, moscow).own
    assert own["text"] == r"At 15\.12\.2026 12:00, 12:00, 15\.12\.2026 00:00: 01\.01\.2027 00:30, x, 2026-12-15"
    assert own["tag"] == at
    assert f"At {at}" in str(prepare(action, {}, values, EVENT).own["text"])


def test_modifiers_calculate_with_the_day_of_the_bot() -> None:
    """`{event_date|format:date}` was the day of UTC, until 3:00 in Moscow yesterday."""
    moscow, values = ZoneInfo("Europe/Moscow"), Values({"at": "2026-12-14T21:30:00+00:00"})
    fields: dict[str, Data] = {"text": "{at|format:date}", "place": "{at|format:datetime}", "day": "{at|to_date}"}
    own = prepare(Action("form", fields, Place("s.yaml"), placeholder=True), {}, values, EVENT, moscow).own
    assert own == {"text": "15.12.2026", "place": "15.12.2026 00:30", "day": "2026-12-15 00:00:00+03:00"}


def test_a_hint_is_written_as_the_question_is() -> None:
    moscow, values = ZoneInfo("Europe/Moscow"), Values({"at": "2026-12-15T09:00:00+00:00"})
    fields: dict[str, Data] = {"text": "?", "hint": "{event_text} {at}"}
    found = [
        prepare(Action(name, fields, Place("s.yaml"), placeholder=True), {}, values, EVENT, moscow).own["hint"]
        for name in ("ask", "send")
    ]
    assert found == ["&lt;b&gt;hi 15.12.2026 12:00", "<b>hi 2026-12-15T09:00:00+00:00"]


def test_what_is_shown_without_marks_is_not_escaped() -> None:
    """A note over the chat showed `&lt;b&gt;`, and a QR code had `&amp;` in its address."""
    moscow, values = ZoneInfo("Europe/Moscow"), Values({"at": "2026-12-15T09:00:00+00:00"})
    for name in ("answer_press", "qr_code"):
        action = Action(name, {"text": "{event_text} & {at}"}, Place("s.yaml"), placeholder=True)
        assert prepare(action, {}, values, EVENT, moscow).own["text"] == "<b>hi & 15.12.2026 12:00"
