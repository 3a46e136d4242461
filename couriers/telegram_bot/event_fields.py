"""The fields of an event that an object of the Bot API gives: of a person, a chat, a message, a link. Pure.

Source: core.telegram.org/bots/api#available-types.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from core.model.contacts.addresses import e164
from core.model.content import ParseMode
from core.model.text.text_entities import has_marks, marked
from couriers.telegram_bot import CHANNEL

FILES = ("photo", "video", "animation", "audio", "voice", "document", "video_note", "sticker")

MARKED = {"event_text_html": ParseMode.HTML, "event_text_markdown": ParseMode.MARKDOWN_V2}
"""The fields with the text and its marks."""

Json = Mapping[str, Any]


def head_of(part: str, kind: str, sender: Json, chat: Json) -> dict[str, Any]:
    about = {"chat_id": chat["id"], "chat_type": chat["type"]}
    for name in ("title", "username"):
        if chat["type"] != "private" and chat.get(name):
            about[f"chat_{name}"] = chat[name]
    return {"id": part, "channel": CHANNEL, "kind": kind, **person_of(sender), **about}


def person_of(user: Json) -> dict[str, Any]:
    names = ("username", "first_name", "last_name", "language_code")
    known = {name: user[name] for name in names if user.get(name)}
    return {"user_id": int(user["id"]), "is_bot": bool(user.get("is_bot")), **known}


def entity_of(prefix: str, entity: Any) -> dict[str, Any]:
    """Return a chat or channel in whose name a message was written."""
    if not isinstance(entity, dict):
        return {}
    kind = "channel" if entity["type"] == "channel" else "chat"
    return {f"{prefix}entity_id": entity["id"], f"{prefix}entity_type": kind}


def marks_of(text: str, entities: Sequence[Json]) -> dict[str, str]:
    """Return the text with its marks, if it has any."""
    if not has_marks(entities):
        return {}
    return {name: marked(text, entities, mode) for name, mode in MARKED.items()}


def at(seconds: int) -> dict[str, str]:
    return {"event_date": date_of(seconds)}


def date_of(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def topic_of(message: Json) -> dict[str, Any]:
    """Return the topic of a message and what it replies to: the message with which the topic began is none."""
    replied, topic = message.get("reply_to_message"), message.get("message_thread_id")
    if not message.get("is_topic_message") or topic is None:
        return reply_of(replied)
    is_root = isinstance(replied, dict) and replied["message_id"] == topic
    return {"topic_id": topic, **({} if is_root else reply_of(replied))}


def reply_of(message: Any) -> dict[str, Any]:
    if not isinstance(message, dict):
        return {}
    text = message.get("text") or message.get("caption") or ""
    sender = person_of(message["from"]) if "from" in message else {}
    author = {f"reply_{name}": value for name, value in sender.items() if name not in ("is_bot", "language_code")}
    return {
        "reply_message_id": message["message_id"],
        "reply_message_text": text,
        **author,
        **({"reply_is_bot": True} if sender.get("is_bot") else {}),
        **entity_of("reply_", message.get("sender_chat")),
        **({"reply_date": date_of(message["date"])} if message.get("date") else {}),  # 0: it is not accessible
        **({"reply_attachments": files} if (files := attachments_of(message)) else {}),
    }


def forward_of(message: Json) -> dict[str, Any]:
    """Return the writer of a forwarded message: a person, perhaps hidden, or a chat or channel."""
    origin = message.get("forward_origin")
    if not isinstance(origin, dict):
        return {"is_forward": True} if "forward_date" in message else {}
    user = person_of(origin["sender_user"]) if "sender_user" in origin else {}
    chat = origin.get("sender_chat") or origin.get("chat") or {}
    about = {
        "forward_entity_id": user.get("user_id"),
        "forward_entity_type": "user" if user else None,
        **entity_of("forward_", chat or None),
        "forward_message_id": origin.get("message_id"),
        "forward_date": date_of(origin["date"]),
        **{f"forward_from_user_{name}": user.get(name) for name in ("username", "first_name", "last_name")},
        **{f"forward_from_chat_{name}": chat.get(name) for name in ("title", "type", "username")},
        **({"forward_from_user_first_name": origin["sender_user_name"]} if "sender_user_name" in origin else {}),
    }
    return {"is_forward": True, **{name: value for name, value in about.items() if value is not None}}


def attachments_of(message: Json) -> list[dict[str, Any]]:
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


def link_of(link: Any) -> dict[str, Any]:
    if not isinstance(link, dict):
        return {}
    creator = link["creator"]
    names = {name: creator[name] for name in ("id", "username", "first_name") if name in creator}
    return {
        "invite_link": link["invite_link"],
        "invite_link_creates_join_request": bool(link.get("creates_join_request")),
        **{f"invite_link_creator_{name}": value for name, value in names.items()},
    }
