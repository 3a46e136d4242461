"""Reads updates of the Bot API as events, the same over long polling and over a webhook. Pure.

Source: core.telegram.org/bots/api#update.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from core.updates.events import Arrival, Event
from couriers.telegram_bot.event_fields import (
    FILES,
    MARKED,
    Json,
    at,
    attachments_of,
    date_of,
    entity_of,
    forward_of,
    head_of,
    link_of,
    marks_of,
    person_of,
    topic_of,
)

ALLOWED = (
    "message",
    "edited_message",
    "callback_query",
    "inline_query",
    "chat_member",
    "my_chat_member",
    "chat_join_request",
)
"""The kinds of updates that the bot asks for. `chat_member` and requests to join come only to administrators of a
group; inline queries only if they are switched on for the bot.
"""

_CONTENTS = ("text", "caption", *FILES, "contact", "location", "venue", "poll", "dice")

_MEMBER = ("creator", "administrator", "member")
_LISTS = {
    "user_id": "joined_user_ids",
    "username": "joined_usernames",
    "first_name": "joined_first_names",
    "last_name": "joined_last_names",
    "is_bot": "joined_is_bots",
}
"""Field of a person → the list of it for all who joined together."""


def read_arrival(update: Json, now: datetime) -> Arrival | None:
    """Return the event of an update; None if it is not of a person, or of another kind. Never raises, whatever
    the update is. `now`: the date of a press, which has none of its own.
    """
    update_id = update.get("update_id")
    if not isinstance(update_id, int):
        return None
    for name, read in _READERS.items():
        content = update.get(name)
        if isinstance(content, dict):
            try:
                return read(str(update_id), content, now)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError):
                return None  # not what the Bot API promises
    return None


def _message(update_id: str, message: Json, now: datetime) -> Arrival | None:
    if members := message.get("new_chat_members"):
        base = {"message_id": int(message["message_id"]), **at(message["date"])}
        return _joined(message["chat"], message["from"], members, f"m{message['message_id']}", base)
    if "left_chat_member" in message:
        base = {"message_id": int(message["message_id"]), **at(message["date"])}
        return _left(message["chat"], message["from"], message["left_chat_member"], base)
    if "from" not in message or not any(name in message for name in _CONTENTS):
        return None  # without a person, or only a notice, for example of a new title
    event = _written(update_id, "text", message)
    album = message.get("media_group_id")
    return Arrival({**event, "media_group_id": album}, f"album.{album}") if album else Arrival(event)


def _edit(update_id: str, message: Json, now: datetime) -> Arrival | None:
    """Return the event of an edit. An edit of an album's photo is an event of its own. Telegram also reports edits that
    no person has made, without a date: for example that a poll was answered.
    """
    if "from" not in message or "edit_date" not in message or not any(name in message for name in _CONTENTS):
        return None
    dates = {"event_date": date_of(message["edit_date"]), "edit_date": date_of(message["edit_date"])}
    return Arrival({**_written(update_id, "edited", message), **dates})


def _written(update_id: str, kind: str, message: Json) -> dict[str, Any]:
    """Return what a person has written, or edited."""
    text = message.get("text") or message.get("caption") or ""
    return {
        **head_of(update_id, kind, message["from"], message["chat"]),
        **entity_of("", message.get("sender_chat")),
        "message_id": int(message["message_id"]),
        "event_text": text,
        **marks_of(text, message.get("entities") or message.get("caption_entities") or ()),
        **at(message["date"]),
        "attachments": attachments_of(message),
        **topic_of(message),
        **forward_of(message),
    }


def _press(update_id: str, query: Json, now: datetime) -> Arrival | None:
    message = query.get("message")
    if not isinstance(message, dict) or "data" not in query:
        return None  # a message in another chat, or a game
    return Arrival(
        {
            **head_of(update_id, "callback", query["from"], message["chat"]),
            "message_id": message["message_id"],
            "callback_id": query["id"],
            "callback_data": query["data"],
            "event_date": now.isoformat(),
        }
    )


def _query(update_id: str, query: Json, now: datetime) -> Arrival | None:
    """Return what a person writes after the bot's name in any chat; the chat of the event is the one with the bot."""
    private = {"id": query["from"]["id"], "type": "private"}
    event = {
        **head_of(update_id, "inline_query", query["from"], private),
        "inline_query_id": str(query["id"]),
        "event_text": str(query["query"]),
        "event_date": now.isoformat(),
        "inline_query_offset": str(query.get("offset") or ""),
    }
    return Arrival(event)


def _member(update_id: str, change: Json, now: datetime) -> Arrival | None:
    new, was = change["new_chat_member"], _is_member(change["old_chat_member"])
    if was == _is_member(new):
        return _changed(update_id, change) if was else None
    if was:
        return _left(change["chat"], change["from"], new["user"], at(change["date"]))
    base = {**link_of(change.get("invite_link")), **at(change["date"])}
    return _joined(change["chat"], change["from"], [new["user"]], f"u{new['user']['id']}", base)


def _own(update_id: str, change: Json, now: datetime) -> Arrival | None:
    """Return the event of other rights of the bot itself; that it joins or leaves a group, a message reports."""
    stays = _is_member(change["old_chat_member"]) and _is_member(change["new_chat_member"])
    return _changed(update_id, change) if stays and change["chat"]["type"] != "private" else None


def _changed(update_id: str, change: Json) -> Arrival | None:
    """Return the event of a member who was promoted or restricted, or has other rights or another title than before."""
    old, new = change["old_chat_member"], change["new_chat_member"]
    if {**old, "user": None} == {**new, "user": None}:
        return None
    event = {
        **head_of(update_id, "changed_member", new["user"], change["chat"]),
        **at(change["date"]),
        "member_status": new["status"],
        "member_status_before": old["status"],
        "member_rights": [name for name, value in new.items() if name.startswith("can_") and value is True],
        **({"member_title": str(new["custom_title"])} if new.get("custom_title") else {}),
        **({"member_until": date_of(new["until_date"])} if new.get("until_date") else {}),
        **_initiator(change["from"]),
    }
    return Arrival(event)


def _request(update_id: str, request: Json, now: datetime) -> Arrival | None:
    event = {
        **head_of(update_id, "join_request", request["from"], request["chat"]),
        **link_of(request.get("invite_link")),
        **at(request["date"]),
        **({"bio": str(request["bio"])} if request.get("bio") else {}),
    }
    return Arrival(event)


def _joined(chat: Json, initiator: Json, members: Sequence[Json], part: str, base: Json) -> Arrival:
    """Return one event for those who joined a chat together. Telegram may report it twice, in different updates."""
    event = {
        **head_of(part, "new_member", members[0], chat),
        **base,
        "members": [person_of(member) for member in members],
        **_initiator(initiator),
    }
    return Arrival(event, f"join.{chat['id']}.{initiator['id']}")


def _left(chat: Json, initiator: Json, member: Json, base: Json) -> Arrival:
    """Return one event for a person who left a chat or was removed. Telegram may report it twice, as it reports
    joins."""
    event = {
        **head_of(f"{'m' if 'message_id' in base else 'u'}{member['id']}", "left_member", member, chat),
        **base,
        **_initiator(initiator),
    }
    return Arrival(event, f"left.{chat['id']}.{member['id']}")


def _initiator(user: Json) -> dict[str, Any]:
    return {f"initiator_{name}": value for name, value in person_of(user).items() if name != "is_bot"}


def _is_member(member: Json) -> bool:
    return member["status"] in _MEMBER or (member["status"] == "restricted" and bool(member.get("is_member")))


def merge(gathered_as: str, parts: Sequence[Event]) -> Event:
    """Return one event of its parts, in whatever order they came: an album, a join, a departure. The same parts give
    the same id.
    """
    ordered = sorted(parts, key=lambda part: int(part.get("message_id") or 2**62))
    merged = _MERGES[ordered[0]["kind"]](ordered)
    return {**merged, "id": f"{gathered_as}.{_mark(ordered)}"}


def _mark(parts: Sequence[Event]) -> str:
    """Return the mark that ends the id. A join is named by its time, because its parts have different numbers and may
    come in different windows.
    """
    if parts[0]["kind"] == "text":
        return str(parts[0]["message_id"])
    return str(min(int(datetime.fromisoformat(part["event_date"]).timestamp()) for part in parts))


def _merged_album(parts: Sequence[Event]) -> Event:
    """Return one event of an album, with the text of the first part that has one."""
    attachments = [one for part in parts for one in part["attachments"]]
    named = next((part for part in parts if part["event_text"]), parts[0])
    texts = {name: named[name] for name in ("event_text", *MARKED) if name in named}
    first = {name: value for name, value in parts[0].items() if name not in MARKED}
    return {**first, **texts, "attachments": attachments}


def _merged_joins(parts: Sequence[Event]) -> Event:
    """Return one event of several joins. Only one of the parts has the link, and only one the number of the message.
    The person of the event is the first who joined; `joined_…s` are lists of all.
    """
    merged: dict[str, Any] = {}
    for part in reversed(parts):
        merged |= part
    del merged["members"]
    members = list({member["user_id"]: member for part in parts for member in part["members"]}.values())
    lists = {name: [member[field] for member in members if field in member] for field, name in _LISTS.items()}
    first = {f"joined_{field}": members[0][field] for field in _LISTS if field in members[0]}
    return {**merged, **lists, **first}


def _merged_departures(parts: Sequence[Event]) -> Event:
    """Return one event of a departure. Only one of the parts has the number of the message."""
    return {name: value for part in reversed(parts) for name, value in part.items()}


_READERS = {
    "message": _message,
    "edited_message": _edit,
    "callback_query": _press,
    "inline_query": _query,
    "chat_member": _member,
    "my_chat_member": _own,
    "chat_join_request": _request,
}
_MERGES = {"text": _merged_album, "new_member": _merged_joins, "left_member": _merged_departures}
