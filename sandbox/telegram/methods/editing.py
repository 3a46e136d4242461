"""messages.editMessage, messages.deleteMessages, channels.deleteMessages; and the checks of entities and buttons.

Source: core.telegram.org/method/messages.editMessage, messages.deleteMessages, channels.deleteMessages.
"""

from dataclasses import replace
from typing import Any

from telethon.tl import types

from sandbox.telegram.methods import peers
from sandbox.telegram.methods.replies import Refusal, Reply
from sandbox.telegram.state.dialogs import DialogMessage
from sandbox.telegram.state.hub import Call, now

MAX_DATA = 64  # bytes of a button
MAX_BUTTONS = 100

INVALID_ID = Refusal(400, "MESSAGE_ID_INVALID")


def check_content(call: Call, address: str) -> Refusal | None:
    """Return the refusal of entities, buttons, or the message to reply to."""
    request = call.request
    length = len((request.message or "").encode("utf-16-le")) // 2
    if any(entity.offset < 0 or entity.offset + entity.length > length for entity in request.entities or ()):
        return Refusal(400, "ENTITY_BOUNDS_INVALID")
    reply_to = reply_to_of(request)
    if reply_to and call.account.dialogs.find(address, reply_to) is None:
        return Refusal(400, "REPLY_MESSAGE_ID_INVALID")
    return _check_buttons(request.reply_markup)


def reply_to_of(request: Any) -> int:
    """Return the id of the message that a request replies to, 0 if it is no reply."""
    return getattr(getattr(request, "reply_to", None), "reply_to_msg_id", 0) or 0


def _check_buttons(markup: Any) -> Refusal | None:
    buttons = [button for row in getattr(markup, "rows", None) or () for button in row.buttons]
    if len(buttons) > MAX_BUTTONS:
        return Refusal(400, "REPLY_MARKUP_TOO_LONG")
    data = [button.type.data for button in buttons if isinstance(button.type, types.InlineButtonTypeCallback)]
    return Refusal(400, "BUTTON_DATA_INVALID") if any(not 0 < len(one) <= MAX_DATA for one in data) else None


def edit_message(call: Call) -> Reply:
    """Handle messages.editMessage: without a text only the buttons change."""
    address = peers.address_of(call.account, call.request.peer)
    if isinstance(address, Refusal):
        return address
    message = call.account.dialogs.find(address, call.request.id)
    if message is None:
        return INVALID_ID
    if not message.is_own:
        return Refusal(403, "MESSAGE_AUTHOR_REQUIRED")
    return check_content(call, address) or _replace(call, address, message)


def _replace(call: Call, address: str, message: DialogMessage) -> Reply:
    request = call.request
    edited = replace(message, markup=request.reply_markup)
    if request.message is not None:
        edited = replace(edited, text=request.message, entities=request.entities or [])
    if _shown(edited) == _shown(message):
        return Refusal(400, "MESSAGE_NOT_MODIFIED")
    call.account.dialogs.store(address, replace(edited, is_edited=True))
    call.hub.state.count("telegram", "edited")
    return types.Updates([], users=[], chats=[], date=now(), seq=0)


def _shown(message: DialogMessage) -> tuple[Any, ...]:
    markup = message.markup and message.markup.to_dict()
    return message.text, [entity.to_dict() for entity in message.entities], markup


def delete_messages(call: Call) -> Reply:
    """Handle messages.deleteMessages: messages that do not exist are skipped."""
    return _affected(call, call.account.dialogs.remove(call.request.id))


def delete_channel_messages(call: Call) -> Reply:
    """Handle channels.deleteMessages."""
    address = peers.address_of(call.account, call.request.channel)
    if isinstance(address, Refusal):
        return address
    return _affected(call, call.account.dialogs.remove(call.request.id, address))


def _affected(call: Call, count: int) -> Reply:
    return types.messages.AffectedMessages(pts=call.account.last_message_id, pts_count=count)
