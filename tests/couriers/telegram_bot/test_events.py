"""Updates of the Bot API, as Telegram sends them and aiogram reads them, become flat events."""

from datetime import UTC, datetime
from typing import Any

import pytest

from core.updates.events import Arrival
from couriers.telegram_bot.events import merge, read_arrival
from tests.support.whole_aiogram import types

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ANNA = {"id": 5, "is_bot": False, "first_name": "Анна", "last_name": "И.", "username": "anna", "language_code": "ru"}
BORIS = {"id": 6, "is_bot": False, "first_name": "Борис"}
PRIVATE = {"id": 5, "type": "private", "first_name": "Анна"}
GROUP = {"id": -1001, "type": "supergroup", "title": "ИВТ-101"}
SIZES = [{"file_id": name, "file_unique_id": name, "width": w, "height": w} for name, w in (("s", 90), ("l", 800))]
Json = dict[str, Any]


def read(**content: Any) -> Arrival | None:
    """What aiogram makes of an update, read."""
    update = types.Update.model_validate({"update_id": 77, **content})
    return read_arrival(update.model_dump(by_alias=True, exclude_none=True), NOW)


def message(**content: Any) -> Json:
    return {"message_id": 3, "date": 1_763_712_000, "chat": PRIVATE, "from": ANNA, **content}


def event_of(**content: Any) -> Json:
    arrival = read(message=message(**content))
    assert arrival is not None
    return dict(arrival.event)


def file(name: str, **more: Any) -> Json:
    return {"file_id": name, "file_unique_id": name, **more}


def test_a_text_has_all_fields_of_the_person_and_the_chat() -> None:
    assert event_of(text="привет", chat=GROUP) == {
        "id": "77",
        "channel": "telegram-bot",
        "kind": "text",
        "user_id": 5,
        "username": "anna",
        "first_name": "Анна",
        "last_name": "И.",
        "language_code": "ru",
        "is_bot": False,
        "chat_id": -1001,
        "chat_type": "supergroup",
        "chat_title": "ИВТ-101",
        "message_id": 3,
        "event_text": "привет",
        "event_date": "2025-11-21T08:00:00+00:00",
        "attachments": [],
    }


def test_of_a_photo_only_the_largest_size_counts() -> None:
    event = event_of(photo=SIZES, caption="вот")
    assert event["attachments"] == [{"type": "photo", "file_id": "l"}]
    assert event["event_text"] == "вот"


@pytest.mark.parametrize(
    ("content", "attachment"),
    [
        (
            {"document": file("d", mime_type="application/pdf", file_name="a.pdf")},
            {"type": "document", "file_id": "d", "mime_type": "application/pdf", "file_name": "a.pdf"},
        ),
        ({"voice": file("v", duration=1)}, {"type": "voice", "file_id": "v"}),
        ({"audio": file("a", duration=1, mime_type="audio/mpeg")},
         {"type": "audio", "file_id": "a", "mime_type": "audio/mpeg"}),
        ({"video": file("w", duration=1, width=1, height=1)}, {"type": "video", "file_id": "w"}),
        ({"animation": file("g", duration=1, width=1, height=1), "document": file("g")},
         {"type": "animation", "file_id": "g"}),
        ({"contact": {"phone_number": "79990000001", "first_name": "A", "user_id": 5}},
         {"type": "contact", "phone": "+79990000001", "is_own": True}),
        ({"contact": {"phone_number": "+7 999 000-00-02", "first_name": "B", "user_id": 6}},
         {"type": "contact", "phone": "+79990000002", "is_own": False}),
        ({"contact": {"phone_number": "89990000003", "first_name": "C"}},
         {"type": "contact", "phone": "+79990000003", "is_own": False}),
    ],
)  # fmt: skip
def test_a_file_is_an_attachment(content: Json, attachment: Json) -> None:
    assert event_of(**content)["attachments"] == [attachment]


def test_a_reply_has_the_message_and_its_author() -> None:
    event = event_of(text="да", reply_to_message=message(message_id=2, text="придёте?", **{"from": BORIS}))
    fields = {name: value for name, value in event.items() if name.startswith("reply_")}
    assert fields == {
        "reply_message_id": 2,
        "reply_message_text": "придёте?",
        "reply_user_id": 6,
        "reply_first_name": "Борис",
        "reply_date": "2025-11-21T08:00:00+00:00",
    }


def test_a_forward_is_marked() -> None:
    origin = {"type": "user", "date": 1, "sender_user": BORIS}
    assert event_of(text="смотри", forward_origin=origin)["is_forward"] is True


def test_a_press_has_its_data_and_the_message() -> None:
    query = {"id": "99", "from": ANNA, "chat_instance": "1", "message": message(text="?"), "data": "да"}
    arrival = read(callback_query=query)
    assert arrival is not None
    wanted = {"kind": "callback", "callback_id": "99", "callback_data": "да", "message_id": 3, "user_id": 5}
    assert wanted.items() <= arrival.event.items()
    assert arrival.event["event_date"] == NOW.isoformat()


def test_the_photos_of_an_album_are_parts_of_one_event_in_any_order() -> None:
    parts = [
        read(message=message(message_id=number, photo=SIZES, media_group_id="8", **more))
        for number, more in ((4, {"caption": "поход"}), (3, {}), (5, {}))
    ]
    found = [part for part in parts if part is not None]
    assert {part.gathered_as for part in found} == {"album.8"}
    event = merge("album.8", [part.event for part in found])
    assert event["id"] == "album.8.3"
    assert event["event_text"] == "поход"
    assert len(event["attachments"]) == 3
    assert merge("album.8", [part.event for part in reversed(found)]) == event


def test_the_photos_of_an_album_are_in_the_order_of_their_numbers() -> None:
    photos = {number: [{**SIZES[0], "file_id": str(number)}] for number in range(8, 12)}
    parts = [read(message=message(message_id=n, photo=one, media_group_id="8")) for n, one in photos.items()]
    event = merge("album.8", [part.event for part in parts if part is not None])
    assert event["id"] == "album.8.8"
    assert [one["file_id"] for one in event["attachments"]] == ["8", "9", "10", "11"]


def test_joins_by_two_people_or_in_two_chats_are_different_events() -> None:
    names = {join(ANNA).gathered_as, join(ANNA, initiator=BORIS).gathered_as}
    other = read(message=message(chat={**GROUP, "id": -1002}, new_chat_members=[ANNA]))
    assert other is not None
    assert len({*names, other.gathered_as}) == 3


def join(*members: Json, initiator: Json = ANNA) -> Arrival:
    notice = message(chat=GROUP, new_chat_members=list(members), **{"from": initiator})
    arrival = read(message=notice)
    assert arrival is not None
    return arrival


def change(user: Json, old: str, new: str, **more: Any) -> Arrival | None:
    member = {"user": user, "status": new}
    about = {"chat": GROUP, "from": ANNA, "date": 1_763_712_000, "new_chat_member": member}
    content = {**about, "old_chat_member": {"user": user, "status": old}, **more}
    return read_arrival({"update_id": 77, "chat_member": content}, NOW)


def test_those_who_are_added_together_are_one_event_with_lists() -> None:
    arrival = join(BORIS, ANNA)
    event = merge(arrival.gathered_as, [arrival.event])
    wanted = {
        "kind": "new_member",
        "user_id": 6,
        "chat_title": "ИВТ-101",
        "joined_user_ids": [6, 5],
        "joined_usernames": ["anna"],
        "joined_first_names": ["Борис", "Анна"],
        "joined_first_name": "Борис",
        "initiator_user_id": 5,
        "initiator_username": "anna",
    }
    assert wanted.items() <= event.items()
    assert "members" not in event


def test_a_join_that_telegram_reports_twice_is_one_event_with_the_link() -> None:
    link = {"invite_link": "https://t.me/+abc", "creator": BORIS, "creates_join_request": False, "is_primary": False,
            "is_revoked": False}  # fmt: skip
    changed = change(ANNA, "left", "member", invite_link=link)
    notice = join(ANNA)
    assert changed is not None
    assert changed.gathered_as == notice.gathered_as
    event = merge(notice.gathered_as, [changed.event, notice.event])
    assert event["joined_user_ids"] == [5]
    assert (event["invite_link"], event["invite_link_creator_id"]) == ("https://t.me/+abc", 6)
    assert event["message_id"] == 3
    assert merge(notice.gathered_as, [notice.event])["id"] == event["id"], "a late one is a repeat"
    later = {**changed.event, "event_date": "2036-01-01T00:00:00+00:00"}
    for parts in ([changed.event, later], [later, changed.event]):
        assert merge(notice.gathered_as, parts)["id"] == event["id"], "in whatever order they come"


@pytest.mark.parametrize(
    "content",
    [
        {"channel_post": {"message_id": 1, "date": 1, "chat": {"id": -100, "type": "channel"}, "text": "news"}},
        {"message": {"message_id": 1, "date": 1, "chat": PRIVATE, "text": "nobody"}},
        {"message": message(new_chat_title="Новое название")},
        {"edited_message": message(text="edited by nobody")},
        {"some_new_kind": {"id": 1}},
    ],
)
def test_an_update_that_is_no_event_of_a_person_is_ignored(content: Json) -> None:
    assert read(**content) is None


def arrived(**content: Any) -> Json:
    arrival = read(**content)
    assert arrival is not None
    return dict(arrival.event)


def test_an_edited_message_is_an_event_of_its_own_kind() -> None:
    event = arrived(edited_message=message(text="исправлено", edit_date=1_763_712_060))
    dates = dict.fromkeys(("event_date", "edit_date"), "2025-11-21T08:01:00+00:00")
    assert {"id": "77", "kind": "edited", "event_text": "исправлено", "message_id": 3, **dates}.items() <= event.items()


def test_who_leaves_or_is_removed_is_one_event_of_two_notices() -> None:
    notice = read(message=message(chat=GROUP, left_chat_member=ANNA, **{"from": BORIS}))
    removed = change(ANNA, "member", "kicked", **{"from": BORIS})
    assert notice is not None
    assert removed is not None
    assert notice.gathered_as == removed.gathered_as == "left.-1001.5"
    event = merge(notice.gathered_as, [removed.event, notice.event])
    assert event == merge(notice.gathered_as, [notice.event, removed.event])
    wanted = {"kind": "left_member", "user_id": 5, "initiator_user_id": 6, "message_id": 3, "chat_title": "ИВТ-101"}
    assert wanted.items() <= event.items()


def test_a_request_to_join_names_the_link_and_what_the_person_says_of_itself() -> None:
    link = {"invite_link": "https://t.me/+abc", "creator": BORIS, "creates_join_request": True, "is_primary": False}
    request = {"chat": GROUP, "from": ANNA, "user_chat_id": 5, "date": 1_763_712_000, "bio": "Учусь"}
    event = arrived(chat_join_request={**request, "invite_link": {**link, "is_revoked": False}})
    about = {"kind": "join_request", "user_id": 5, "chat_id": -1001, "bio": "Учусь"}
    assert {**about, "invite_link": "https://t.me/+abc", "invite_link_creator_id": 6}.items() <= event.items()


def test_an_inline_query_is_of_the_person_in_private() -> None:
    event = arrived(inline_query={"id": "99", "from": ANNA, "query": "рыбы", "offset": "20", "chat_type": "group"})
    about = {"kind": "inline_query", "user_id": 5, "chat_id": 5, "chat_type": "private", "event_text": "рыбы"}
    assert {**about, "inline_query_id": "99", "inline_query_offset": "20"}.items() <= event.items()


def test_who_is_removed_from_outside_has_not_left_again() -> None:
    assert change(ANNA, "left", "kicked") is None


def altered(old: Json, new: Json, chat: Json = GROUP, of: str = "chat_member") -> Json | None:
    """The event of a person whose ChatMember was changed by Boris."""
    both = {"old_chat_member": {"user": ANNA, **old}, "new_chat_member": {"user": ANNA, **new}}
    update = {"update_id": 77, of: {"chat": chat, "from": BORIS, "date": 1_763_712_000, **both}}
    arrival = read_arrival(update, NOW)
    return dict(arrival.event) if arrival else None


MEMBER: Json = {"status": "member"}
LEADER = {"status": "administrator", "can_invite_users": True, "can_promote_members": False, "custom_title": "Староста"}
MUTED = {"status": "restricted", "is_member": True, "can_send_messages": False, "until_date": 1_763_798_400}


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (MEMBER, LEADER, {"member_status": "administrator", "member_status_before": "member",
                          "member_rights": ["can_invite_users"], "member_title": "Староста"}),
        (LEADER, MEMBER, {"member_status": "member", "member_status_before": "administrator", "member_rights": []}),
        (LEADER, {**LEADER, "can_promote_members": True}, {"member_status": "administrator",
                          "member_status_before": "administrator",
                          "member_rights": ["can_invite_users", "can_promote_members"], "member_title": "Староста"}),
        (MEMBER, MUTED, {"member_status": "restricted", "member_status_before": "member", "member_rights": [],
                         "member_until": "2025-11-22T08:00:00+00:00"}),
    ],
    ids=["promoted", "demoted", "other rights", "muted"],
)  # fmt: skip
def test_other_rights_of_a_member_are_an_event(old: Json, new: Json, wanted: Json) -> None:
    event = altered(old, new)
    assert event is not None
    assert {name: value for name, value in event.items() if name.startswith("member_")} == wanted
    about = {"kind": "changed_member", "id": "77", "user_id": 5, "initiator_user_id": 6, "chat_title": "ИВТ-101"}
    assert about.items() <= event.items()


def test_the_bot_learns_of_its_own_rights_in_groups_but_not_twice_of_its_joins() -> None:
    own = "my_chat_member"
    assert (altered(MEMBER, LEADER, of=own) or {})["kind"] == "changed_member"
    assert altered({"status": "left"}, LEADER, of=own) is None
    assert altered(MEMBER, LEADER, PRIVATE, of=own) is None
    assert altered(LEADER, LEADER) is None


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"update_id": "1"},
        {"update_id": 1, "message": {"text": 1}},
        {"update_id": 1, "message": {"from": 5, "chat": 5, "date": "x", "message_id": 1, "text": "x"}},
        {"update_id": 1, "message": {**message(text="x"), "date": 10**20}},
        {"update_id": 1, "message": {**message(), "photo": [{}]}},
        {"update_id": 1, "callback_query": {"data": "x", "message": {}}},
        {"update_id": 1, "chat_member": {"old_chat_member": None, "new_chat_member": None}},
    ],
)
def test_what_the_bot_api_does_not_promise_is_ignored(update: Json) -> None:
    assert read_arrival(update, NOW) is None
