"""What authors read of an event: the fields of the dialect, whatever the channel."""

from datetime import UTC, datetime
from typing import Any

import pytest

from couriers.telegram_bot.events import read_arrival
from couriers.vk import events as vk_events
from delivery.api.updates import EventRequest
from scenarios.bot import Action, Place
from scenarios.bot.event_fields import FIELDS, OF_ADA, with_derived
from scenarios.engine import Values
from scenarios.placeholders.attributes import prepare
from tests.support.whole_aiogram import types

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ANNA = {"id": 5, "is_bot": False, "first_name": "Анна", "username": "anna"}
BORIS = {"id": 6, "is_bot": False, "first_name": "Борис", "last_name": "Б.", "username": "boris"}
PRIVATE = {"id": 5, "type": "private"}
GROUP = {"id": -1001, "type": "supergroup", "title": "Клуб"}
NEWS = {"id": -1002, "type": "channel", "title": "Новости", "username": "news"}
AT = 1_763_712_000
DAY = "2025-11-21T08:00:00+00:00"
Json = dict[str, Any]


def message(**content: Any) -> Json:
    return {"message_id": 3, "date": AT, "chat": PRIVATE, "from": ANNA, "text": "a<b", **content}


def event(update: Json) -> Json:
    model = types.Update.model_validate({"update_id": 1, **update})
    arrival = read_arrival(model.model_dump(by_alias=True, exclude_none=True), NOW)
    assert arrival is not None
    return with_derived(arrival.event, "ru")


def of(**content: Any) -> Json:
    return event({"message": message(**content)})


BOLD = [{"type": "bold", "offset": 0, "length": 1}]
REPLY = of(reply_to_message=message(message_id=2, **{"from": BORIS, "text": "?"}))
REPLY_TO_CHANNEL = of(chat=GROUP, reply_to_message=message(message_id=2, sender_chat=NEWS))
FORWARD = of(forward_origin={"type": "user", "date": AT, "sender_user": BORIS})
OF_CHANNEL = of(forward_origin={"type": "channel", "date": AT, "chat": NEWS, "message_id": 9})
OF_CHAT = of(forward_origin={"type": "chat", "date": AT, "sender_chat": GROUP})
HIDDEN = of(forward_origin={"type": "hidden_user", "date": AT, "sender_user_name": "Кто-то"})
EDITED = event({"edited_message": message(edit_date=AT + 60, text="b")})
JOINED = with_derived({"kind": "new_member", "user_id": 5, "chat_id": -1001, "chat_type": "supergroup"}, "ru")


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (of(), {"entity_id": 5, "entity_type": "user", "is_reply": False, "is_forward": False, "event_date": DAY}),
        (of(sender_chat=GROUP, chat=GROUP), {"entity_id": -1001, "entity_type": "chat", "user_id": 5}),
        (JOINED, {"entity_id": -1001, "entity_type": "chat"}),
        (of(), {"event_text_html": "a&lt;b", "event_text_markdown": "a<b"}),
        (of(entities=BOLD), {"event_text_html": "<b>a</b>&lt;b", "event_text_markdown": "*a*<b", "event_text": "a<b"}),
        (REPLY, {"is_reply": True, "reply_entity_id": 6, "reply_entity_type": "user", "reply_date": DAY}),
        (REPLY_TO_CHANNEL, {"reply_entity_id": -1002, "reply_entity_type": "channel"}),
        (FORWARD, {"is_forward": True, "forward_entity_id": 6, "forward_entity_type": "user", "forward_date": DAY}),
        (FORWARD, {"forward_from_user_first_name": "Борис", "forward_from_user_last_name": "Б."}),
        (FORWARD, {"forward_from_user_username": "boris"}),
        (OF_CHANNEL, {"forward_entity_id": -1002, "forward_entity_type": "channel", "forward_message_id": 9}),
        (OF_CHANNEL, {"forward_from_chat_title": "Новости", "forward_from_chat_type": "channel"}),
        (OF_CHAT, {"forward_entity_id": -1001, "forward_entity_type": "chat"}),
        (HIDDEN, {"is_forward": True, "forward_from_user_first_name": "Кто-то"}),
        (of(media_group_id="8"), {"media_group_id": "8"}),
        (EDITED, {"kind": "edited", "event_text": "b", "edit_date": "2025-11-21T08:01:00+00:00", "message_id": 3}),
    ],
)  # fmt: skip
def test_an_event_of_telegram_has_the_fields_of_the_dialect(found: Json, wanted: Json) -> None:
    assert wanted.items() <= found.items()
    assert found.keys() <= FIELDS.keys()


def test_who_hides_the_account_has_no_entity() -> None:
    assert "forward_entity_id" not in HIDDEN


def test_an_event_of_vk_has_them_too() -> None:
    raw = {"from_id": 5, "peer_id": 5, "id": 3, "date": AT, "text": "a<b"}
    reply, forward = {"id": 2, "from_id": 6, "text": "?", "date": AT}, [{"from_id": -7, "date": AT, "text": "news"}]
    content = {"message": {**raw, "reply_message": reply, "fwd_messages": forward}}
    arrival = vk_events.read_arrival({"type": "message_new", "event_id": "1", "object": content}, NOW)
    assert arrival is not None
    found = with_derived(arrival.event, "ru")
    reply_fields = {"is_reply": True, "reply_entity_id": 6, "reply_entity_type": "user", "reply_date": DAY}
    forward_fields = {"forward_entity_id": -7, "forward_entity_type": "channel", "forward_date": DAY}
    assert {**reply_fields, **forward_fields, "entity_id": 5, "event_text_html": "a&lt;b"}.items() <= found.items()
    assert found.keys() <= FIELDS.keys()


def test_an_event_of_the_api_may_have_all_fields_but_those_that_ada_sets() -> None:
    accepted = set(EventRequest.__struct_fields__)
    assert accepted <= FIELDS.keys()
    assert FIELDS.keys() - accepted == set(OF_ADA)


@pytest.mark.parametrize(
    ("text", "mode", "sent"),
    [
        ("{event_text_html}", "HTML", "<b>a</b>&lt;b{user_id}"),
        ("Q: {event_text_html|fallback:-}", "HTML", "Q: <b>a</b>&lt;b{user_id}"),
        ("{event_text_html|truncate:9}", "HTML", "&lt;b&gt;a&lt;/..."),
        ("{event_text_markdown}", "HTML", "*a*&lt;b\\{user\\_id\\}"),
        ("{event_text_markdown}", "MarkdownV2", "*a*<b\\{user\\_id\\}"),
        ("{event_text}", "HTML", "a&lt;b{user_id}"),
    ],
)
def test_the_marks_of_a_person_are_shown_and_its_braces_are_no_placeholders(text: str, mode: str, sent: str) -> None:
    written = of(text="a<b{user_id}", entities=BOLD)
    action = Action("send", {"text": text, "parse_mode": mode}, Place("s.yaml"))
    assert prepare(action, {"placeholder": True}, Values(), written).own["text"] == sent


def test_a_variable_with_the_name_of_a_field_with_marks_is_escaped_like_any_other() -> None:
    values = Values(variables={"event_text_html": "<i>"}, from_person=frozenset({"event_text_html"}))
    action = Action("send", {"text": "{event_text_html}"}, Place("s.yaml"))
    assert prepare(action, {"placeholder": True}, values, of(entities=BOLD)).own["text"] == "&lt;i&gt;"


def test_the_answer_of_a_model_is_shown_with_its_marks_only_in_the_parse_mode_for_which_it_is_ready() -> None:
    results = {"response_text_md2": "*1\\.5* {user_id}", "response_text_html": "<b>1.5</b> {user_id}"}
    values = Values(results, from_person=frozenset(results))

    def sent(text: str, mode: str) -> Any:
        action = Action("send", {"text": text, "parse_mode": mode}, Place("s.yaml"))
        return prepare(action, {"placeholder": True}, values, of()).own["text"]

    assert sent("{response_text_md2}", "MarkdownV2") == "*1\\.5* {user_id}"
    assert sent("{response_text_html}", "HTML") == "<b>1.5</b> {user_id}"
    assert sent("{response_text_html}", "MarkdownV2") == "<b\\>1\\.5</b\\> \\{user\\_id\\}"
