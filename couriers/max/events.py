"""Reads updates of MAX as events, the same over long polling and over a webhook. Pure.

Updates have no id: one is named by its type, time, and the message, press or person that it concerns, so that a repeat
is recognised. A dialog has a chat id of its own, which is no address of the person: in the event it is `dialog_id`, and
`chat_id` is the person's.
Source: dev.max.ru, object Update; the schema max-messenger/api-schema 0.0.33.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from core.directory.preferences import Reach
from core.model.contacts.addresses import e164
from core.model.content import ParseMode
from core.model.text.text_entities import has_marks, marked
from core.updates.events import Arrival
from couriers.max import CHANNEL

TYPES = (
    *("message_created", "message_callback", "message_edited", "bot_started", "bot_stopped", "user_added"),
    "user_removed",
)
"""The updates that the bot asks for."""

_FILES = {"image": "photo", "video": "video", "audio": "audio", "file": "document", "sticker": "sticker"}
_MARKS = {
    "strong": "bold",
    "emphasized": "italic",
    "monospaced": "code",
    "strikethrough": "strikethrough",
    "underline": "underline",
    "link": "text_link",
}
_TELEPHONE = re.compile(r"^TEL[^:\r\n]*:([^\r\n]+)", re.MULTILINE)

Json = Mapping[str, Any]


def read_arrival(update: Json, now: datetime) -> Arrival | None:
    """Return the event of an update; None if it is not of a person, or of another type. Never raises, whatever
    the update is.
    """
    read = _READERS.get(str(update.get("update_type")))
    try:
        return read(update) if read else None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError):
        return None  # not what MAX promises


def read_reach(update: Json) -> Reach | None:
    """Return who has stopped the bot, or started it; None for any other update. Never raises."""
    kind, user = update.get("update_type"), update.get("user")
    if kind not in ("bot_started", "bot_stopped") or not isinstance(user, dict):
        return None
    return Reach(str(user.get("user_id")), kind == "bot_started")


def _message(update: Json, kind: str = "text") -> Arrival | None:
    message = update["message"]
    body, sender = message["body"], message["sender"]
    if sender.get("is_bot"):
        return None
    text = body.get("text") or ""
    return Arrival(
        {
            **_head(update, kind, sender, message["recipient"], body["mid"]),
            "message_id": body["mid"],
            "event_text": text,
            **_marks(text, body.get("markup") or ()),
            "attachments": _attachments(body.get("attachments") or (), sender),
            **_link(message.get("link")),
        }
    )


def _edit(update: Json) -> Arrival | None:
    arrival = _message(update, "edited")
    return Arrival({**arrival.event, "edit_date": arrival.event["event_date"]}) if arrival else None


def _press(update: Json) -> Arrival:
    press, message = update["callback"], update["message"]
    return Arrival(
        {
            **_head(update, "callback", press["user"], message["recipient"], press["callback_id"]),
            "message_id": message["body"]["mid"],
            "callback_id": press["callback_id"],
            "callback_data": press["payload"],
        }
    )


def _start(update: Json) -> Arrival:
    """Return what Start means: the command with which a dialog begins, and the payload of a deep link."""
    user = update["user"]
    text = f"/start {update.get('payload') or ''}".rstrip()
    head = _head(update, "text", user, {"chat_type": "dialog", "chat_id": update.get("chat_id")}, user["user_id"])
    return Arrival({**head, "event_text": text, "attachments": []})


def _joined(update: Json) -> Arrival:
    user = update["user"]
    head, person = _head(update, "new_member", user, update, user["user_id"]), _person(user)
    names = ("user_id", "username", "first_name", "last_name", "is_bot")
    known = {name: person[name] for name in names if name in person}
    return Arrival(
        {
            **head,
            **{f"joined_{name}": value for name, value in known.items()},
            **{f"joined_{name}s": [value] for name, value in known.items()},
            **_initiator(update.get("inviter_id") or user["user_id"]),
        }
    )


def _left(update: Json) -> Arrival:
    user = update["user"]
    head = _head(update, "left_member", user, update, user["user_id"])
    return Arrival({**head, **_initiator(update.get("admin_id") or user["user_id"])})


def _initiator(user: Any) -> dict[str, Any]:
    return {"initiator_user_id": int(user)}


def _head(update: Json, kind: str, user: Json, chat: Json, concerned: Any) -> dict[str, Any]:
    """Return what all events have. `chat`: a recipient, or an update with the id of a group."""
    is_private = chat.get("chat_type") == "dialog"
    chat_type = "channel" if chat.get("is_channel") or chat.get("chat_type") == "channel" else "group"
    locale = {"language_code": update["user_locale"]} if update.get("user_locale") else {}
    return {
        "id": _name(update["update_type"], update["timestamp"], concerned, chat.get("chat_id")),
        "channel": CHANNEL,
        "kind": kind,
        **_person(user),
        **locale,
        "chat_id": int(user["user_id"]) if is_private else int(chat["chat_id"]),
        "chat_type": "private" if is_private else chat_type,
        **({"dialog_id": int(chat["chat_id"])} if is_private and chat.get("chat_id") else {}),
        "event_date": datetime.fromtimestamp(int(update["timestamp"]) / 1000, UTC).isoformat(),
    }


def _name(*parts: Any) -> str:
    return blake2b("\n".join(map(str, parts)).encode(errors="replace"), digest_size=16).hexdigest()


def _person(user: Json) -> dict[str, Any]:
    names = {name: str(user[name]) for name in ("username", "first_name", "last_name") if user.get(name)}
    if "first_name" not in names and user.get("name"):
        names["first_name"] = str(user["name"])
    return {"user_id": int(user["user_id"]), "is_bot": bool(user.get("is_bot")), **names}


def _marks(text: str, markup: Sequence[Json]) -> dict[str, str]:
    """Return the text with its marks, if it has any."""
    entities = [
        {"type": _MARKS[one["type"]], "offset": one["from"], "length": one["length"], "url": one.get("url")}
        for one in markup
        if one.get("type") in _MARKS
    ]
    if not has_marks(entities):
        return {}
    modes = {"event_text_html": ParseMode.HTML, "event_text_markdown": ParseMode.MARKDOWN_V2}
    return {name: marked(text, entities, mode) for name, mode in modes.items()}


def urls_of(message: Json) -> Sequence[str]:
    """Return where the files of a message are, "" for one without an address."""
    files = [one for one in message["body"].get("attachments") or () if one["type"] in _FILES]
    return [str((one.get("payload") or {}).get("url") or "") for one in files]


def _attachments(given: Sequence[Json], sender: Json) -> list[dict[str, Any]]:
    return [_attachment(one, sender) for one in given if one["type"] in _FILES or one["type"] == "contact"]


def _attachment(given: Json, sender: Json) -> dict[str, Any]:
    """Return an attachment. `file_id`: the token by which another message names the file. `is_own`: the contact is that
    of the sender.
    """
    payload = given.get("payload") or {}
    if given["type"] == "contact":
        found = _TELEPHONE.search(payload.get("vcf_info") or "")
        owner = (payload.get("max_info") or {}).get("user_id")
        return {"type": "contact", "phone": _phone(found[1]) if found else "", "is_own": owner == sender["user_id"]}
    named = {"file_name": given["filename"]} if given.get("filename") else {}
    return {"type": _FILES[given["type"]], "file_id": str(payload.get("token") or payload.get("code") or ""), **named}


def _phone(written: str) -> str:
    return e164(written) or e164(f"+{written}") or ""


def _link(link: Any) -> dict[str, Any]:
    """Return the message to which this one replies, or who wrote the one that it forwards."""
    if not isinstance(link, dict):
        return {}
    body, author = link["message"], link.get("sender") or {}
    if link["type"] == "reply":
        written = {"reply_user_id": int(author["user_id"])} if author else {}
        return {"reply_message_id": body["mid"], "reply_message_text": body.get("text") or "", **written}
    about = {"forward_entity_id": int(author["user_id"]), "forward_entity_type": "user"} if author else {}
    files = sum(one["type"] in _FILES for one in body.get("attachments") or ())
    known = {"forward_text": body.get("text") or "", "forward_files": files}
    content = {name: value for name, value in known.items() if value}
    return {"is_forward": True, "forward_message_id": body["mid"], **about, **content}


_READERS = {
    "message_created": _message,
    "message_edited": _edit,
    "message_callback": _press,
    "bot_started": _start,
    "user_added": _joined,
    "user_removed": _left,
}
