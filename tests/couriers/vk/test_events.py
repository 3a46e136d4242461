"""Events of a VK community become flat events of scenarios."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from core.updates.events import checked
from couriers.vk.events import read_arrival

NOW = datetime(2026, 11, 22, tzinfo=UTC)
PERSON, CHAT = 200_001, 2_000_000_005
Json = dict[str, Any]


def read(kind: str, content: Json) -> Json | None:
    arrival = read_arrival({"type": kind, "event_id": "e1", "group_id": 1, "object": content}, NOW)
    return None if arrival is None else checked({**arrival.event, "source": "community"})


def message(**content: Any) -> Json:
    known = {"id": 5, "conversation_message_id": 3, "date": 1_763_712_000, "from_id": PERSON, "peer_id": PERSON}
    return {"message": {**known, "text": "", "attachments": [], "fwd_messages": [], **content}}


def event_of(**content: Any) -> Json:
    event = read("message_new", message(**content))
    assert event is not None
    return event


def test_a_text_is_an_event_of_a_private_chat() -> None:
    assert event_of(text="привет") == {
        "id": "e1",
        "channel": "vk",
        "source": "community",
        "kind": "text",
        "user_id": PERSON,
        "is_bot": False,
        "chat_id": PERSON,
        "chat_type": "private",
        "message_id": 3,
        "event_text": "привет",
        "event_date": "2025-11-21T08:00:00+00:00",
        "attachments": [],
    }


def test_an_edit_of_a_person_has_its_own_date_and_one_of_the_community_is_none() -> None:
    edited = message(text="да", update_time=1_763_712_060)["message"]
    about = {"kind": "edited", "message_id": 3, "event_text": "да"}
    dates = {"event_date": "2025-11-21T08:01:00+00:00", "edit_date": "2025-11-21T08:01:00+00:00"}
    assert {**about, **dates}.items() <= (read("message_edit", edited) or {}).items()
    assert read("message_edit", {**edited, "from_id": -1}) is None


def test_a_chat_of_several_people_is_a_group() -> None:
    assert event_of(text="x", peer_id=CHAT)["chat_type"] == "group"


@pytest.mark.parametrize(
    ("action", "kind", "user"),
    [
        ({"type": "chat_invite_user", "member_id": 7}, "new_member", 7),
        ({"type": "chat_invite_user_by_link"}, "new_member", PERSON),
        ({"type": "chat_kick_user", "member_id": 7}, "left_member", 7),
        ({"type": "chat_kick_user", "member_id": PERSON}, "left_member", PERSON),
    ],
)
def test_who_joins_or_leaves_a_chat_is_an_event(action: Json, kind: str, user: int) -> None:
    event = event_of(peer_id=CHAT, action=action)
    about = {"kind": kind, "user_id": user, "chat_id": CHAT, "chat_type": "group", "initiator_user_id": PERSON}
    assert about.items() <= event.items()
    assert event.get("joined_user_ids") == ([user] if kind == "new_member" else None)


@pytest.mark.parametrize(
    "action",
    [
        {"type": "chat_title_update", "text": "ИВТ"},
        {"type": "chat_invite_user", "member_id": -1},
        {"type": "chat_invite_user", "member_id": -100, "email": "a@example.org"},
        {"type": 5},
    ],
)
def test_another_notice_of_a_chat_is_no_event(action: Json) -> None:
    assert read("message_new", message(peer_id=CHAT, action=action)) is None


@pytest.mark.parametrize(
    ("attachment", "wanted"),
    [
        ({"type": "photo", "photo": {"id": 2, "owner_id": -1, "access_key": "k"}},
         {"type": "photo", "file_id": "photo-1_2_k"}),
        ({"type": "doc", "doc": {"id": 2, "owner_id": 1, "title": "a.pdf"}},
         {"type": "document", "file_id": "doc1_2", "file_name": "a.pdf"}),
        ({"type": "audio_message", "audio_message": {"id": 2, "owner_id": 1}}, {"type": "voice", "file_id": "doc1_2"}),
        ({"type": "sticker", "sticker": {"sticker_id": 9}}, {"type": "sticker", "file_id": "9"}),
    ],
)  # fmt: skip
def test_a_file_is_an_attachment_by_the_name_that_vk_gives_it(attachment: Json, wanted: Json) -> None:
    assert event_of(attachments=[attachment, {"type": "wall", "wall": {}}])["attachments"] == [wanted]


def test_a_pressed_button_is_a_callback() -> None:
    press = {"user_id": PERSON, "peer_id": PERSON, "event_id": "p1", "conversation_message_id": 7}
    event = read("message_event", {**press, "payload": {"data": "да"}})
    assert event is not None
    wanted = {"kind": "callback", "callback_id": "p1", "callback_data": "да", "message_id": 7, "user_id": PERSON}
    assert wanted.items() <= event.items()


def test_a_button_of_the_keyboard_writes_its_text_or_is_a_callback() -> None:
    assert event_of(text="Да", payload=json.dumps({"data": "да"}))["callback_data"] == "да"
    assert event_of(text="Да", payload='{"button": 5}')["kind"] == "text"
    assert event_of(text="Да", payload="{")["kind"] == "text"
    assert event_of(text="Начать", payload='{"command": "start"}')["event_text"] == "/start"


def test_a_forward_is_marked_and_a_reply_has_its_message() -> None:
    assert event_of(fwd_messages=[{"text": "x"}])["is_forward"] is True
    reply = event_of(text="да", reply_message={"conversation_message_id": 2, "from_id": 7, "text": "придёте?"})
    assert (reply["reply_message_id"], reply["reply_message_text"], reply["reply_user_id"]) == (2, "придёте?", 7)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("message_new", message(from_id=-5, text="a community")),
        ("message_new", message(from_id=0, text="nobody")),
        ("message_new", message(action={"type": "chat_title_update"})),
        ("message_new", {}),
        ("message_new", {"message": {"text": "x"}}),
        ("message_event", {"user_id": PERSON, "payload": {}}),
        ("message_event", {"payload": {"data": "x"}}),
        ("message_read", {"from_id": PERSON}),
        ("some_new_kind", {"id": 1}),
    ],
)
def test_what_is_no_event_of_a_person_is_ignored(kind: str, content: Json) -> None:
    assert read(kind, content) is None


@pytest.mark.parametrize("event_id", [None, 5, ""])
def test_an_event_without_an_id_is_ignored(event_id: object) -> None:
    assert read_arrival({"type": "message_new", "event_id": event_id, "object": message(text="x")}, NOW) is None
