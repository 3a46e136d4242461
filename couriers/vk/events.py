"""Reads events of a VK community, which are the same over its long poll and its callback API. Pure.

A callback that asks whose address this is comes the same way. Source: dev.vk.com, "Community events".
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from core.model.contacts.addresses import FIRST_CHAT
from core.updates.events import Arrival
from couriers.vk import CHANNEL

ANSWER = "ok"
"""To each event that was stored."""

_FILES = ("photo", "video", "audio", "doc", "audio_message", "sticker")
_KINDS = {"doc": "document", "audio_message": "voice"}
"""VK's type of a file → that of an event, where they differ."""

_MEMBERS = {
    "chat_invite_user": "new_member",
    "chat_invite_user_by_link": "new_member",
    "chat_kick_user": "left_member",
}
"""VK's action in a chat → the kind of the event."""

Json = Mapping[str, Any]


class InboundVkEvent(Struct, frozen=True):
    """An event of VK's callback API. VK sends further fields, which are those of the event's type."""

    type: Annotated[str, Meta(max_length=256)]
    secret: Annotated[str, Meta(max_length=1024, description="ADA_INBOUND_VK_SECRET")] = ""


Fields = InboundVkEvent


def update_of(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the event for `couriers.vk.events`; None if VK asks whose address this is, which a confirmation
    answers.
    """
    return None if event.get("type") == "confirmation" else event


def read_arrival(event: Json, now: datetime) -> Arrival | None:
    """Return the event; None unless a person writes, presses a button, or joins or leaves a chat. Never raises,
    whatever the event is. `now`: the date of a press, which has none of its own.
    """
    event_id, content = event.get("event_id"), event.get("object")
    if not isinstance(event_id, str) or not event_id or not isinstance(content, dict):
        return None
    try:
        match event.get("type"):
            case "message_new":
                return _message(event_id[:128], content["message"])
            case "message_edit":
                return _edit(event_id[:128], content.get("message") or content)
            case "message_event":
                return _press(event_id[:128], content, now)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError):
        pass  # not what VK promises
    return None


def _message(event_id: str, message: Json) -> Arrival | None:
    if int(message["from_id"]) <= 0:
        return None  # another community
    if "action" in message:
        return _member(event_id, message, message["action"])
    event = _written(event_id, "text", message)
    payload = _payload(message.get("payload"))
    if payload.get("command") == "start":
        event["event_text"] = "/start"  # the button with which a dialog begins
    elif (data := _data(payload)) is not None:
        event |= {"kind": "callback", "callback_data": data}
    return Arrival(event)


def _edit(event_id: str, message: Json) -> Arrival | None:
    """Return the event of an edit of a person; VK also reports those of the community."""
    if int(message["from_id"]) <= 0 or "action" in message:
        return None
    event, edited = _written(event_id, "edited", message), message.get("update_time") or message["date"]
    return Arrival({**event, "event_date": _date(edited), "edit_date": _date(edited)})


def _written(event_id: str, kind: str, message: Json) -> dict[str, Any]:
    """Return what a person has written, or edited."""
    return {
        **_head(event_id, kind, message["from_id"], message["peer_id"]),
        "message_id": _number(message),
        "event_text": message.get("text") or "",
        "event_date": _date(message["date"]),
        "attachments": [_attachment(one) for one in files_of(message)],
        **_reply(message.get("reply_message")),
        **_forward(message.get("fwd_messages")),
    }


def _member(event_id: str, message: Json, action: Json) -> Arrival | None:
    """Return the event of a person who joined a chat, left it or was removed; None for another notice, for example of a
    new title, and for an invitation by e-mail, which names no person.
    """
    by, person = int(message["from_id"]), int(action.get("member_id") or message["from_id"])
    kind = _MEMBERS.get(action["type"])
    if kind is None or person <= 0:
        return None
    joined = {"joined_user_id": person, "joined_user_ids": [person]} if kind == "new_member" else {}
    head = _head(event_id, kind, person, message["peer_id"])
    about = {"message_id": _number(message), "event_date": _date(message["date"]), "initiator_user_id": by}
    return Arrival({**head, **about, **joined})


def _number(message: Json) -> Any:
    """Return the number of a message in the dialog, as presses name it: in chats the other id is always 0."""
    return message.get("conversation_message_id") or message.get("id")


def _press(event_id: str, press: Json, now: datetime) -> Arrival | None:
    data = _data(_payload(press.get("payload")))
    if data is None:
        return None
    return Arrival(
        {
            **_head(event_id, "callback", press["user_id"], press["peer_id"]),
            "message_id": press["conversation_message_id"],
            "callback_id": press["event_id"],
            "callback_data": data,
            "event_date": now.isoformat(),
        }
    )


def _head(event_id: str, kind: str, person: int, peer: int) -> dict[str, Any]:
    chat = "group" if int(peer) >= FIRST_CHAT else "private"
    return {
        "id": event_id,
        "channel": CHANNEL,
        "kind": kind,
        "user_id": int(person),
        "is_bot": False,
        "chat_id": int(peer),
        "chat_type": chat,
    }


def _payload(payload: Any) -> Json:
    """Return the payload of a button: a JSON object, or a text with one. Any other payload is ignored."""
    if isinstance(payload, str):
        try:
            payload = json.loads(payload)
        except (ValueError, RecursionError):
            return {}
    return payload if isinstance(payload, dict) else {}


def _data(payload: Json) -> str | None:
    data = payload.get("data")
    return data if isinstance(data, str) else None


def files_of(message: Json) -> Sequence[Json]:
    """Return the attachments of a message that are files."""
    return [one for one in message.get("attachments") or () if one["type"] in _FILES]


def url_of(attachment: Json) -> str:
    """Return where a file is; of a picture the largest size; "" if VK does not say."""
    file = attachment[attachment["type"]]
    if sizes := file.get("sizes") or file.get("images"):
        return str(max(sizes, key=lambda one: int(one["width"]) * int(one["height"]))["url"])
    return str(file.get("url") or file.get("link_ogg") or "")


def _attachment(attachment: Json) -> dict[str, Any]:
    """Return an attachment. `file_id`: the name under which VK attaches the file to another message."""
    kind = attachment["type"]
    file = attachment[kind]
    if kind == "sticker":
        return {"type": kind, "file_id": str(file["sticker_id"])}
    numbers = (file["owner_id"], file["id"], file.get("access_key"))
    vk_type = "doc" if kind == "audio_message" else kind
    about = {"file_name": file["title"]} if kind == "doc" and file.get("title") else {}
    return {"type": _KINDS.get(kind, kind), "file_id": vk_type + "_".join(str(one) for one in numbers if one), **about}


def _reply(message: Any) -> dict[str, Any]:
    if not isinstance(message, dict):
        return {}
    return {
        "reply_message_id": _number(message),
        "reply_message_text": message.get("text") or "",
        "reply_user_id": message["from_id"],
        **({"reply_date": _date(message["date"])} if message.get("date") else {}),
    }


def _forward(messages: Any) -> dict[str, Any]:
    """Return the writer of the first forwarded message: a person, or a community, whose number is negative; the words
    of all, and how many files they have.
    """
    if not isinstance(messages, list) or not messages:
        return {}
    author, seconds = (messages[0].get(name) for name in ("from_id", "date"))
    about = {"forward_entity_id": author, "forward_entity_type": "user" if author > 0 else "channel"} if author else {}
    words = "\n\n".join(one["text"] for one in messages if one.get("text"))
    files = sum(len(files_of(one)) for one in messages)
    known = {"forward_text": words, "forward_files": files, "forward_date": _date(seconds) if seconds else None}
    return {"is_forward": True, **about, **{name: value for name, value in known.items() if value}}


def _date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
