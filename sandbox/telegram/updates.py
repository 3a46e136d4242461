"""The methods of `updates`, and what people do of themselves: read and write."""

from typing import Any

from telethon.tl import types

from sandbox.telegram.accounts import Account, Pushed
from sandbox.telegram.hub import Call, Platform, now, user
from sandbox.telegram.replies import Reply


def get_state(call: Call) -> Reply:
    """updates.getState."""
    return _state(call.account)


def _state(account: Account) -> Any:
    return types.updates.State(pts=account.serial, qts=0, date=now(), seq=0, unread_count=0)


def get_difference(call: Call) -> Reply:
    """updates.getDifference: what was pushed since the client's pts, as far as it is still kept."""
    account = call.account
    if call.request.pts >= account.serial:
        return types.updates.DifferenceEmpty(date=now(), seq=0)
    return _difference(account, [pushed for pushed in account.pushed if pushed.pts > call.request.pts])


def _difference(account: Account, missed: list[Pushed]) -> Any:
    updates = [pushed.update for pushed in missed]
    return types.updates.Difference(
        new_messages=[update.message for update in updates if isinstance(update, types.UpdateNewMessage)],
        new_encrypted_messages=[],
        other_updates=[update for update in updates if not isinstance(update, types.UpdateNewMessage)],
        chats=[],
        users=[person for pushed in missed for person in pushed.users],
        state=_state(account),
    )


def get_channel_difference(call: Call) -> Reply:
    """updates.getChannelDifference: nobody but the account itself writes in a channel, so nothing was missed."""
    return types.updates.ChannelDifferenceEmpty(pts=call.request.pts, final=True)


def read_by(platform: Platform, person: int) -> int:
    """Let the person read everything sent to him; returns how many accounts learned it. Bots never do."""
    senders = [account for account in platform.accounts.all() if str(person) in account.newest_to and not account.bot]
    for account in senders:
        newest = account.newest_to[str(person)]
        update = types.UpdateReadHistoryOutbox(
            types.PeerUser(person), max_id=newest, pts=account.next_serial(), pts_count=1
        )
        platform.push(account, update, [user(account, person)])
    return len(senders)


def written_by(platform: Platform, person: int, text: str, account: Account) -> int:
    """Let the person write to the account; returns the message's number. From then on the account knows him."""
    platform.meet(account, [person])
    number = account.next_serial()
    message = types.Message(number, peer_id=types.PeerUser(person), date=now(), message=text)
    platform.push(account, types.UpdateNewMessage(message, pts=number, pts_count=1), [user(account, person)])
    return number
