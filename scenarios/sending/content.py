"""The content of a message besides its text, as the courier of the channel shows it (C-40 to C-43, C-48). Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import Invalid
from core.model.content import Attachment, Button, Content, ParseMode
from core.model.delivery import NewDelivery, Sender
from core.orders.content_rules import check_content
from scenarios.engine.triggers import chat_kind, source_of
from scenarios.placeholders.values import is_true
from scenarios.sending.message import Message, parse_mode

Event = Mapping[str, Any]


def content_of(message: Message, attachments: Sequence[Attachment], event: Event, *, same_chat: bool) -> Content:
    """Return the content of a message. `same_chat`: it goes to the chat of the event, so it may refer to messages
    there."""
    place = _place(message, event) if same_chat else {}
    return Content(
        parse_mode=parse_mode(message.get("parse_mode")),
        inline=tuple(tuple(_button(button) for button in row) for row in message.get("inline") or ()),
        reply=message.get("reply"),
        request_contact=message.get("request_contact") or (),
        attachments=tuple(attachments),
        **place,
    )


def refusal_of(message: Message) -> Invalid | None:
    """Return why no delivery may have this message; None if one may. Files are not looked at."""
    content = content_of(message, (), {}, same_chat=False)
    try:
        check_content(NewDelivery("", Sender("bot"), message["text"] or "x", (), (), content=content))
    except Invalid as refusal:
        return refusal
    return None


def needed(content: Content, text: str) -> Content | None:
    """Return the content; None if a plain text is enough."""
    if content != Content(parse_mode=ParseMode.HTML) or "<" in text or "&" in text:
        return content
    return None


def is_private(message: Message, event: Event) -> bool:
    """Return whether the message goes to the person instead of the group in which the event was."""
    return is_true(message.get("private_answer")) and chat_kind(event) == "group"


def _place(message: Message, event: Event) -> dict[str, str]:
    """Return the messages of the chat that this one concerns: message_reply wins over an edit, and that over
    `remove`."""
    of_event = _id(event.get("message_id"))
    removed = _id(message.get("remove_message_id"))
    if is_true(message.get("message_reply")):
        found = {"reply_to": of_event}
    elif edited := _edited(message, event, of_event):
        found = {"edit": edited}
    else:
        removed = removed or (of_event if is_true(message.get("remove")) else "")
        found = {}
    return {**found, "remove": removed} if removed else found


def _edited(message: Message, event: Event, of_event: str) -> str:
    """Return the message to edit; "" for a new message. A pressed button edits its message unless `callback_edit` is
    false."""
    if exact := _id(message.get("exact_message_id")):
        return exact
    edits = source_of(event) == "callback" and is_true(message.get("callback_edit", True))
    return of_event if edits else ""


def _button(button: Mapping[str, str]) -> Button:
    """Return a button. A text without letters and digits, such as an emoji, is normalised to nothing; it is its own
    data.
    """
    url = button.get("url", "")
    return Button(button["text"], "" if url else button.get("data") or button["text"], url)


def _id(value: Any) -> str:
    return "" if value in (None, "", 0) else str(value)
