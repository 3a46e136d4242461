"""Reads updates of the Bot API as events of scenarios, the same over long polling and over a webhook. Pure.

Source: core.telegram.org/bots/api#update.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from core.updates.arrival import Arrival
from core.updates.events import Event
from core.updates.telegram_updates import CHANNEL

ALLOWED = ("message", "callback_query", "chat_member")
"""The kinds of updates that the bot asks for. `chat_member` comes only to administrators of a group."""

_FILES = ("photo", "video", "animation", "audio", "voice", "document", "video_note", "sticker")
_CONTENTS = ("text", "caption", *_FILES, "contact", "location", "venue", "poll", "dice")
_MEMBER = ("creator", "administrator", "member")
_LISTS = {
    "user_id": "joined_user_ids",
    "username": "joined_usernames",
    "first_name": "joined_first_names",
    "last_name": "joined_last_names",
    "is_bot": "joined_is_bots",
}
"""Field of a person → the list of it for all who joined together."""

Json = Mapping[str, Any]


def read_arrival(update: Json, now: datetime) -> Arrival | None:
    """The event of an update; None for one that is not of a person, or of another kind. Never raises, whatever the
    update is. `now`: the date of a press, which has none of its own.
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
    if "from" not in message or not any(name in message for name in _CONTENTS):
        return None  # without a person, or only a notice, for example of a new title
    text = message.get("text") or message.get("caption") or ""
    event = {
        **_head(update_id, "text", message["from"], message["chat"]),
        "message_id": int(message["message_id"]),
        "event_text": text,
        **_at(message["date"]),
        "attachments": _attachments(message),
        **_reply(message.get("reply_to_message")),
        **({"is_forward": True} if _is_forward(message) else {}),
    }
    album = message.get("media_group_id")
    return Arrival(event, f"album.{album}") if album else Arrival(event)


def _press(update_id: str, query: Json, now: datetime) -> Arrival | None:
    message = query.get("message")
    if not isinstance(message, dict) or "data" not in query:
        return None  # a message in another chat, or a game
    return Arrival(
        {
            **_head(update_id, "callback", query["from"], message["chat"]),
            "message_id": message["message_id"],
            "callback_id": query["id"],
            "callback_data": query["data"],
            "event_date": now.isoformat(),
        }
    )


def _member(update_id: str, change: Json, now: datetime) -> Arrival | None:
    new = change["new_chat_member"]
    if _is_member(change["old_chat_member"]) or not _is_member(new):
        return None
    base = {**_link(change.get("invite_link")), **_at(change["date"])}
    return _joined(change["chat"], change["from"], [new["user"]], f"u{new['user']['id']}", base)


_READERS = {"message": _message, "callback_query": _press, "chat_member": _member}


def _joined(chat: Json, initiator: Json, members: Sequence[Json], part: str, base: Json) -> Arrival:
    """One event for those who joined a chat together. Telegram may report it twice, in different updates."""
    event = {
        **_head(part, "new_member", members[0], chat),
        **base,
        "members": [_person(member) for member in members],
        **{f"initiator_{name}": value for name, value in _person(initiator).items() if name != "is_bot"},
    }
    return Arrival(event, f"join.{chat['id']}.{initiator['id']}")


def _head(part: str, kind: str, sender: Json, chat: Json) -> dict[str, Any]:
    about = {"chat_id": chat["id"], "chat_type": chat["type"]}
    for name in ("title", "username"):
        if chat["type"] != "private" and chat.get(name):
            about[f"chat_{name}"] = chat[name]
    return {"id": part, "channel": CHANNEL, "kind": kind, **_person(sender), **about}


def _person(user: Json) -> dict[str, Any]:
    names = ("username", "first_name", "last_name", "language_code")
    known = {name: user[name] for name in names if user.get(name)}
    return {"user_id": int(user["id"]), "is_bot": bool(user.get("is_bot")), **known}


def _at(seconds: int) -> dict[str, str]:
    return {"event_date": datetime.fromtimestamp(seconds, UTC).isoformat()}


def _reply(message: Any) -> dict[str, Any]:
    if not isinstance(message, dict):
        return {}
    text = message.get("text") or message.get("caption") or ""
    sender = _person(message["from"]) if "from" in message else {}
    author = {f"reply_{name}": value for name, value in sender.items() if name not in ("is_bot", "language_code")}
    return {"reply_message_id": message["message_id"], "reply_message_text": text, **author}


def _is_forward(message: Json) -> bool:
    return "forward_origin" in message or "forward_date" in message


def _attachments(message: Json) -> list[dict[str, Any]]:
    found = [name for name in _FILES if message.get(name)]
    if "animation" in found:
        found = ["animation"]  # it comes as a document, too
    return [_attachment(name, message[name]) for name in found]


def _attachment(kind: str, file: Any) -> dict[str, Any]:
    """Of the sizes of a photo the largest one (C-15)."""
    chosen = max(file, key=lambda size: size["width"] * size["height"]) if kind == "photo" else file
    known = {name: chosen[name] for name in ("mime_type", "file_name") if chosen.get(name)}
    return {"type": kind, "file_id": chosen["file_id"], **known}


def _is_member(member: Json) -> bool:
    return member["status"] in _MEMBER or (member["status"] == "restricted" and bool(member.get("is_member")))


def _link(link: Any) -> dict[str, Any]:
    if not isinstance(link, dict):
        return {}
    creator = link["creator"]
    names = {name: creator[name] for name in ("id", "username", "first_name") if name in creator}
    return {
        "invite_link": link["invite_link"],
        "invite_link_creates_join_request": bool(link.get("creates_join_request")),
        **{f"invite_link_creator_{name}": value for name, value in names.items()},
    }


def merge(gathered_as: str, parts: Sequence[Event]) -> Event:
    """One event of its parts, in whatever order they came: an album, or a join. The same parts give the same id."""
    ordered = sorted(parts, key=lambda part: int(part.get("message_id") or 2**62))
    merged = _merged_joins(ordered) if ordered[0]["kind"] == "new_member" else _merged_album(ordered)
    return {**merged, "id": f"{gathered_as}.{_mark(ordered)}"}


def _mark(parts: Sequence[Event]) -> str:
    """A join is named by its time, because its parts have different numbers and may come in different windows."""
    if parts[0]["kind"] != "new_member":
        return str(parts[0]["message_id"])
    return str(min(int(datetime.fromisoformat(part["event_date"]).timestamp()) for part in parts))


def _merged_album(parts: Sequence[Event]) -> Event:
    attachments = [one for part in parts for one in part["attachments"]]
    text = next((part["event_text"] for part in parts if part["event_text"]), "")
    return {**parts[0], "event_text": text, "attachments": attachments}


def _merged_joins(parts: Sequence[Event]) -> Event:
    """Only one of the parts has the link, and only one the number of the message. The person of the event is the first
    who joined; `joined_…s` are lists of all.
    """
    merged: dict[str, Any] = {}
    for part in reversed(parts):
        merged |= part
    del merged["members"]
    members = list({member["user_id"]: member for part in parts for member in part["members"]}.values())
    lists = {name: [member[field] for member in members if field in member] for field, name in _LISTS.items()}
    first = {f"joined_{field}": members[0][field] for field in _LISTS if field in members[0]}
    return {**merged, **lists, **first}
