"""The content of a message besides its text, as Telegram's types: entities, keyboards, messages to reply to, edit,
remove.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from telethon.tl import functions, types

from couriers.sending import Content, Feature, Message, Span, cut_text, spans, split_text

LONGEST_TEXT = 4096  # UTF-16 code units
LONGEST_CAPTION = 1024

_ENTITIES = {
    "bold": types.MessageEntityBold,
    "italic": types.MessageEntityItalic,
    "underline": types.MessageEntityUnderline,
    "strikethrough": types.MessageEntityStrike,
    "spoiler": types.MessageEntitySpoiler,
    "code": types.MessageEntityCode,
    "blockquote": types.MessageEntityBlockquote,
}

Request = Any  # Telethon has no types


class TelegramRequests(NamedTuple):
    """`not_shown`: as in `couriers.sending.Sent`."""

    requests: Sequence[Request]
    not_shown: tuple[str, ...] = ()


def text_requests(peer: Any, message: Message) -> TelegramRequests:
    """Return the requests that send the text, each with its own random id: without content one for each part of the
    text."""
    send = functions.messages.SendMessageRequest
    content = message.content
    if content is None:
        parts = enumerate(split_text(message.text))
        return TelegramRequests([send(peer, text, random_id=message.random_id(part)) for part, text in parts])
    if not message.text.strip():
        return TelegramRequests([])
    text, entities, not_shown = cut_and_marked(message, content, LONGEST_TEXT)
    around = {"entities": entities, "reply_markup": keyboard(content), "reply_to": reply_to(content)}
    return TelegramRequests([send(peer, text, random_id=message.random_id(), **around)], not_shown)


def reply_to(content: Content) -> Any:
    """Return the message to reply to, None if there is none."""
    message_id = _message_id(content.reply_to.partition(",")[0])
    return types.InputReplyToMessage(message_id) if message_id else None


def edit_request(peer: Any, message: Message, content: Content) -> tuple[Request, tuple[str, ...]] | None:
    """Return the request that edits a message, and what it does not show; None if an edit cannot show the content."""
    message_id = _message_id(content.edit.rpartition(",")[2])
    if not message_id or content.reply is not None or content.attachments:
        return None
    request = functions.messages.EditMessageRequest(peer, message_id, reply_markup=keyboard(content))
    if not message.text.strip():
        return request, ()
    request.message, request.entities, not_shown = cut_and_marked(message, content, LONGEST_TEXT)
    return request, not_shown


def remove_request(peer: Any, content: Content) -> Request | None:
    """Return the request that removes messages, None if there is none to remove."""
    ids = [number for one in content.remove.split(",") if (number := _message_id(one))]
    if not ids:
        return None
    if isinstance(peer, types.InputPeerChannel):
        return functions.channels.DeleteMessagesRequest(types.InputChannel(peer.channel_id, peer.access_hash), ids)
    return functions.messages.DeleteMessagesRequest(ids, revoke=True)


def keyboard(content: Content) -> Any:
    """Return the buttons below the message, else those in place of the person's keyboard; None if there are none."""
    if content.inline:
        rows = [[_button(one.text, one.data, one.url) for one in row] for row in content.inline if row]
        return types.ReplyInlineMarkup([types.KeyboardInlineButtonRow(row) for row in rows])
    if content.reply is None:
        return None
    texts = [row for row in content.reply if row]
    keys = [types.KeyboardButtonRow([_key(one, one in content.request_contact) for one in row]) for row in texts]
    return types.ReplyKeyboardMarkup(keys, resize=True) if keys else types.ReplyKeyboardHide()


def _key(text: str, asks_for_contact: bool) -> Any:
    kind = types.ButtonTypeRequestPhone() if asks_for_contact else types.ButtonTypeDefault()
    return types.KeyboardButton(text, kind)


def _button(text: str, data: str, url: str) -> Any:
    kind = types.InlineButtonTypeUrl(url) if url else types.InlineButtonTypeCallback(data.encode())
    return types.KeyboardInlineButton(text, kind)


def cut_and_marked(message: Message, content: Content, longest: int) -> tuple[str, list[Any], tuple[str, ...]]:
    """Return the text that is shown, its entities, and what is not shown of it."""
    cut = cut_text(message.text, content.parse_mode, longest)
    text, marked = spans(cut, content.parse_mode)
    entities = [entity for span in marked if (entity := _entity(span))]
    return text, entities, () if cut == message.text else (Feature.TEXT_END,)


def _entity(span: Span) -> Any:
    """Return the entity of a marked range; None if it is not sent."""
    match span.kind:
        case "link":
            return types.MessageEntityTextUrl(span.offset, span.length, span.target) if span.target else None
        case "pre":
            return types.MessageEntityPre(span.offset, span.length, span.target)
        case kind if kind in _ENTITIES:
            return _ENTITIES[kind](span.offset, span.length)
    return None


def _message_id(text: str) -> int:
    """Return the id of a message; 0 if this is none."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0
