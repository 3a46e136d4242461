"""Reads updates of the Bot API as events, the same over long polling and over a webhook. Pure.

Source: core.telegram.org/bots/api#update.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from core.model.contacts.addresses import e164
from core.model.content import ParseMode
from core.model.text.text_entities import has_marks, marked
from core.updates.events import Arrival, Event
from couriers.telegram_bot import CHANNEL

FILES = ("photo", "video", "animation", "audio", "voice", "document", "video_note", "sticker")

MARKED = {"event_text_html": ParseMode.HTML, "event_text_markdown": ParseMode.MARKDOWN_V2}
"""The fields with the text and its marks."""

Json = Mapping[str, Any]

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
        base = {"message_id": int(message["message_id"]), **_at(message["date"])}
        return _joined(message["chat"], message["from"], members, f"m{message['message_id']}", base)
    if "left_chat_member" in message:
        base = {"message_id": int(message["message_id"]), **_at(message["date"])}
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
    dates = {"event_date": _date_of(message["edit_date"]), "edit_date": _date_of(message["edit_date"])}
    return Arrival({**_written(update_id, "edited", message), **dates})


def _written(update_id: str, kind: str, message: Json) -> dict[str, Any]:
    """Return what a person has written, or edited."""
    text = message.get("text") or message.get("caption") or ""
    return {
        **_head_of(update_id, kind, message["from"], message["chat"]),
        **_entity_of("", message.get("sender_chat")),
        "message_id": int(message["message_id"]),
        "event_text": text,
        **_marks_of(text, message.get("entities") or message.get("caption_entities") or ()),
        **_at(message["date"]),
        "attachments": _attachments_of(message),
        **_topic_of(message),
        **_forward_of(message),
    }


def _press(update_id: str, query: Json, now: datetime) -> Arrival | None:
    message = query.get("message")
    if not isinstance(message, dict) or "data" not in query:
        return None  # a message in another chat, or a game
    return Arrival(
        {
            **_head_of(update_id, "callback", query["from"], message["chat"]),
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
        **_head_of(update_id, "inline_query", query["from"], private),
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
        return _left(change["chat"], change["from"], new["user"], _at(change["date"]))
    base = {**_link_of(change.get("invite_link")), **_at(change["date"])}
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
        **_head_of(update_id, "changed_member", new["user"], change["chat"]),
        **_at(change["date"]),
        "member_status": new["status"],
        "member_status_before": old["status"],
        "member_rights": [name for name, value in new.items() if name.startswith("can_") and value is True],
        **({"member_title": str(new["custom_title"])} if new.get("custom_title") else {}),
        **({"member_until": _date_of(new["until_date"])} if new.get("until_date") else {}),
        **_initiator(change["from"]),
    }
    return Arrival(event)


def _request(update_id: str, request: Json, now: datetime) -> Arrival | None:
    event = {
        **_head_of(update_id, "join_request", request["from"], request["chat"]),
        **_link_of(request.get("invite_link")),
        **_at(request["date"]),
        **({"bio": str(request["bio"])} if request.get("bio") else {}),
    }
    return Arrival(event)


def _joined(chat: Json, initiator: Json, members: Sequence[Json], part: str, base: Json) -> Arrival:
    """Return one event for those who joined a chat together. Telegram may report it twice, in different updates."""
    event = {
        **_head_of(part, "new_member", members[0], chat),
        **base,
        "members": [_person_of(member) for member in members],
        **_initiator(initiator),
    }
    return Arrival(event, f"join.{chat['id']}.{initiator['id']}")


def _left(chat: Json, initiator: Json, member: Json, base: Json) -> Arrival:
    """Return one event for a person who left a chat or was removed. Telegram may report it twice, as it reports
    joins."""
    event = {
        **_head_of(f"{'m' if 'message_id' in base else 'u'}{member['id']}", "left_member", member, chat),
        **base,
        **_initiator(initiator),
    }
    return Arrival(event, f"left.{chat['id']}.{member['id']}")


def _initiator(user: Json) -> dict[str, Any]:
    return {f"initiator_{name}": value for name, value in _person_of(user).items() if name != "is_bot"}


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


def _head_of(part: str, kind: str, sender: Json, chat: Json) -> dict[str, Any]:
    about = {"chat_id": chat["id"], "chat_type": chat["type"]}
    for name in ("title", "username"):
        if chat["type"] != "private" and chat.get(name):
            about[f"chat_{name}"] = chat[name]
    return {"id": part, "channel": CHANNEL, "kind": kind, **_person_of(sender), **about}


def _person_of(user: Json) -> dict[str, Any]:
    names = ("username", "first_name", "last_name", "language_code")
    known = {name: user[name] for name in names if user.get(name)}
    return {"user_id": int(user["id"]), "is_bot": bool(user.get("is_bot")), **known}


def _entity_of(prefix: str, entity: Any) -> dict[str, Any]:
    """Return a chat or channel in whose name a message was written."""
    if not isinstance(entity, dict):
        return {}
    kind = "channel" if entity["type"] == "channel" else "chat"
    return {f"{prefix}entity_id": entity["id"], f"{prefix}entity_type": kind}


def _marks_of(text: str, entities: Sequence[Json]) -> dict[str, str]:
    """Return the text with its marks, if it has any."""
    if not has_marks(entities):
        return {}
    return {name: marked(text, entities, mode) for name, mode in MARKED.items()}


def _at(seconds: int) -> dict[str, str]:
    return {"event_date": _date_of(seconds)}


def _date_of(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _topic_of(message: Json) -> dict[str, Any]:
    """Return the topic of a message and what it replies to: the message with which the topic began is none."""
    replied, topic = message.get("reply_to_message"), message.get("message_thread_id")
    if not message.get("is_topic_message") or topic is None:
        return _reply_of(replied)
    is_root = isinstance(replied, dict) and replied["message_id"] == topic
    return {"topic_id": topic, **({} if is_root else _reply_of(replied))}


def _reply_of(message: Any) -> dict[str, Any]:
    if not isinstance(message, dict):
        return {}
    text = message.get("text") or message.get("caption") or ""
    sender = _person_of(message["from"]) if "from" in message else {}
    author = {f"reply_{name}": value for name, value in sender.items() if name not in ("is_bot", "language_code")}
    return {
        "reply_message_id": message["message_id"],
        "reply_message_text": text,
        **author,
        **({"reply_is_bot": True} if sender.get("is_bot") else {}),
        **_entity_of("reply_", message.get("sender_chat")),
        **({"reply_date": _date_of(message["date"])} if message.get("date") else {}),  # 0: it is not accessible
        **({"reply_attachments": files} if (files := _attachments_of(message)) else {}),
    }


def _forward_of(message: Json) -> dict[str, Any]:
    """Return the writer of a forwarded message: a person, perhaps hidden, or a chat or channel."""
    origin = message.get("forward_origin")
    if not isinstance(origin, dict):
        return {"is_forward": True} if "forward_date" in message else {}
    user = _person_of(origin["sender_user"]) if "sender_user" in origin else {}
    chat = origin.get("sender_chat") or origin.get("chat") or {}
    about = {
        "forward_entity_id": user.get("user_id"),
        "forward_entity_type": "user" if user else None,
        **_entity_of("forward_", chat or None),
        "forward_message_id": origin.get("message_id"),
        "forward_date": _date_of(origin["date"]),
        **{f"forward_from_user_{name}": user.get(name) for name in ("username", "first_name", "last_name")},
        **{f"forward_from_chat_{name}": chat.get(name) for name in ("title", "type", "username")},
        **({"forward_from_user_first_name": origin["sender_user_name"]} if "sender_user_name" in origin else {}),
    }
    return {"is_forward": True, **{name: value for name, value in about.items() if value is not None}}


def _attachments_of(message: Json) -> list[dict[str, Any]]:
    found = [name for name in FILES if message.get(name)]
    if "animation" in found:
        found = ["animation"]  # it comes as a document, too
    contact = [_contact(message["contact"], message.get("from") or {})] if message.get("contact") else []
    return [*(_attachment(name, message[name]) for name in found), *contact]


def _contact(contact: Json, sender: Json) -> dict[str, Any]:
    """Return a contact. `is_own`: it is that of the sender; without an id it may be of anybody."""
    number = str(contact["phone_number"])
    is_own = "user_id" in contact and contact["user_id"] == sender.get("id")
    return {"type": "contact", "phone": e164(number) or e164(f"+{number}") or "", "is_own": is_own}


def _attachment(kind: str, file: Any) -> dict[str, Any]:
    """Return an attachment; of the sizes of a photo the largest one (C-15)."""
    chosen = max(file, key=lambda size: size["width"] * size["height"]) if kind == "photo" else file
    known = {name: chosen[name] for name in ("mime_type", "file_name") if chosen.get(name)}
    return {"type": kind, "file_id": chosen["file_id"], **known}


def _link_of(link: Any) -> dict[str, Any]:
    if not isinstance(link, dict):
        return {}
    creator = link["creator"]
    names = {name: creator[name] for name in ("id", "username", "first_name") if name in creator}
    return {
        "invite_link": link["invite_link"],
        "invite_link_creates_join_request": bool(link.get("creates_join_request")),
        **{f"invite_link_creator_{name}": value for name, value in names.items()},
    }
