"""Who an InputPeer or InputUser means, and whether this account may address him.

An address is what the inbox shows: a user's id, "-<id>" for a group, "-100<id>" for a channel.
"""

from typing import Any

from telethon.tl import types

from sandbox.telegram import identities as persons
from sandbox.telegram.accounts import Account
from sandbox.telegram.replies import Refusal

_LARGEST_CHAT = 999_999_999_999
_LARGEST_CHANNEL = 997_852_516_352  # core.telegram.org/api/bots/ids
PEER_INVALID = Refusal(400, "PEER_ID_INVALID")
CHANNEL_INVALID = Refusal(400, "CHANNEL_INVALID")


def address_of(account: Account, peer: Any) -> str | Refusal:
    """Return the address, or the refusal for what does not exist or came with a wrong access hash."""
    match peer:
        case types.InputPeerSelf() | types.InputUserSelf():
            return str(account.id)
        case types.InputPeerUser() | types.InputUser():
            return _user(account, peer.user_id, peer.access_hash)
        case types.InputPeerChat():
            return f"-{peer.chat_id}" if 0 < peer.chat_id <= _LARGEST_CHAT else PEER_INVALID
        case types.InputPeerChannel() | types.InputChannel():
            return _channel(account, peer.channel_id, peer.access_hash)
    return PEER_INVALID


def _user(account: Account, identity: int, access_hash: int) -> str | Refusal:
    address = str(identity)
    return address if persons.exists(identity) and _opens(account, address, access_hash) else PEER_INVALID


def _channel(account: Account, identity: int, access_hash: int) -> str | Refusal:
    address = f"-100{identity}"
    known = 0 < identity <= _LARGEST_CHANNEL and _opens(account, address, access_hash)
    return address if known else CHANNEL_INVALID


def _opens(account: Account, address: str, access_hash: int) -> bool:
    """Tell if the hash is right. Bots may leave it 0, users only for themselves and people they know."""
    if access_hash == 0:
        return account.bot or address == str(account.id) or int(address) in account.known
    return access_hash == persons.access_hash(account.id, address)
