"""The methods of `updates`, and updates caused by users: reading, writing and editing messages, pressing buttons."""

from copy import copy
from secrets import randbits
from typing import Any

from telethon.tl import types

from sandbox.telegram.methods.replies import Reply
from sandbox.telegram.state.accounts import Account, PushedUpdate
from sandbox.telegram.state.dialogs import DialogMessage
from sandbox.telegram.state.hub import Call, Hub, now, user


def get_state(call: Call) -> Reply:
    """Handle updates.getState."""
    return _state(call.account)


def _state(account: Account) -> Any:
    return types.updates.State(pts=account.last_message_id, qts=0, date=now(), seq=0, unread_count=0)


def get_difference(call: Call) -> Reply:
    """Handle updates.getDifference: return the updates since the client's pts, as far as they are still kept."""
    account = call.account
    if call.request.pts >= account.last_message_id:
        return types.updates.DifferenceEmpty(date=now(), seq=0)
    return _difference(account, [pushed for pushed in account.pushed if pushed.pts > call.request.pts])


def _difference(account: Account, missed: list[PushedUpdate]) -> Any:
    updates = [pushed.update for pushed in missed]
    return types.updates.Difference(
        new_messages=[update.message for update in updates if isinstance(update, types.UpdateNewMessage)],
        new_encrypted_messages=[],
        other_updates=[update for update in updates if not isinstance(update, types.UpdateNewMessage)],
        chats=[],
        users=[each for pushed in missed for each in pushed.users],
        state=_state(account),
    )


def get_channel_difference(call: Call) -> Reply:
    """Handle updates.getChannelDifference: return none, because only the account itself writes in a channel."""
    return types.updates.ChannelDifferenceEmpty(pts=call.request.pts, final=True)


def mark_read(hub: Hub, user_id: int) -> int:
    """Mark all messages to the user as read; return how many accounts are notified. Bots never are."""
    senders = [
        account for account in hub.accounts.all() if str(user_id) in account.newest_message_to and not account.bot
    ]
    for account in senders:
        newest = account.newest_message_to[str(user_id)]
        update = types.UpdateReadHistoryOutbox(
            types.PeerUser(user_id), max_id=newest, pts=account.next_message_id(), pts_count=1
        )
        hub.push(account, update, [user(account, user_id)])
    return len(senders)


def write_message(hub: Hub, user_id: int, text: str, account: Account, *, reply_to: int = 0, **more: Any) -> int:
    """Send a message from the user to the account; return its id. The account knows the user from then on. `reply_to`:
    the id of the message that it replies to, 0 for none. `more`: further fields of the message, such as `media`.
    """
    hub.add_known_users(account, [user_id])
    message_id = account.next_message_id()
    account.dialogs.store(str(user_id), DialogMessage(message_id, text, is_own=False))
    quoted = types.MessageReplyHeader(reply_to_msg_id=reply_to) if reply_to else None
    message = types.Message(message_id, types.PeerUser(user_id), now(), text, reply_to=quoted, **more)
    hub.push(account, types.UpdateNewMessage(message, pts=message_id, pts_count=1), [user(account, user_id)])
    return message_id


def edit_message(hub: Hub, user_id: int, message_id: int, text: str, account: Account) -> None:
    """Edit a message that the user has written. Raises LookupError if there is none."""
    message = copy(received_message(account, message_id))
    if message is None or message.peer_id.user_id != user_id:
        raise LookupError(f"{user_id} has written no message {message_id}")
    message.message, message.edit_date = text, now()
    update = types.UpdateEditMessage(message, pts=account.next_message_id(), pts_count=1)
    hub.push(account, update, [user(account, user_id)])


def press_button(hub: Hub, user_id: int, message_id: int, label: str, account: Account) -> int:
    """Press a button below a message to the user; return the id of the query. It is pushed to the clients that are
    connected, and not kept for updates.getDifference. Raises LookupError if there is no such button.
    """
    message = account.dialogs.find(str(user_id), message_id)
    rows = getattr(message and message.markup, "rows", None) or ()
    data = next((one.type.data for row in rows for one in row.buttons if one.text == label), None)
    if data is None:
        raise LookupError(f"the message {message_id} has no button {label}")
    query = randbits(62)
    update = types.UpdateBotCallbackQuery(query, user_id, types.PeerUser(user_id), message_id, randbits(62), data=data)
    hub.push_unkept(account, update, [user(account, user_id)])
    return query


def answer_press(call: Call) -> Reply:
    """Handle messages.setBotCallbackAnswer."""
    call.account.press_answers[call.request.query_id] = call.request.message or ""
    return True


def received_message(account: Account, message_id: int) -> Any:
    """Return a message that a user has written, as far as it is still kept."""
    written = (one.update.message for one in account.pushed if isinstance(one.update, types.UpdateNewMessage))
    return next((one for one in written if one.id == message_id), None)


def get_messages(call: Call) -> Reply:
    """Handle messages.getMessages: of those that users have written."""
    ids = [getattr(one, "id", one) for one in call.request.id]
    found = [received_message(call.account, one) or types.MessageEmpty(one) for one in ids]
    return types.messages.Messages(messages=found, topics=[], chats=[], users=[])
