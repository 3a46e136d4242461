"""The attributes of an action when it runs."""

from typing import Any

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
