"""Converts an InputPeer or InputUser to an address, if the account may address it.

The inbox shows the same address: a user's id, "-<id>" for a group, "-100<id>" for a channel.
"""

from typing import Any

from telethon.tl import types

from sandbox.telegram.methods.replies import Refusal
from sandbox.telegram.state import identities
from sandbox.telegram.state.accounts import Account

_MAX_CHAT = 999_999_999_999
_MAX_CHANNEL = 997_852_516_352  # core.telegram.org/api/bots/ids
PEER_INVALID = Refusal(400, "PEER_ID_INVALID")
CHANNEL_INVALID = Refusal(400, "CHANNEL_INVALID")


def address_of(account: Account, peer: Any) -> str | Refusal:
    """Return the address, or the refusal if the peer does not exist or the access hash is wrong."""
    match peer:
        case types.InputPeerSelf() | types.InputUserSelf():
            return str(account.id)
        case types.InputPeerUser() | types.InputUser():
            return _user(account, peer.user_id, peer.access_hash)
        case types.InputPeerChat():
            return f"-{peer.chat_id}" if 0 < peer.chat_id <= _MAX_CHAT else PEER_INVALID
        case types.InputPeerChannel() | types.InputChannel():
            return _channel(account, peer.channel_id, peer.access_hash)
    return PEER_INVALID


def _user(account: Account, user_id: int, access_hash: int) -> str | Refusal:
    address = str(user_id)
    return address if identities.exists(user_id) and _is_hash_valid(account, address, access_hash) else PEER_INVALID


def _channel(account: Account, channel_id: int, access_hash: int) -> str | Refusal:
    address = f"-100{channel_id}"
    known = 0 < channel_id <= _MAX_CHANNEL and _is_hash_valid(account, address, access_hash)
    return address if known else CHANNEL_INVALID


def _is_hash_valid(account: Account, address: str, access_hash: int) -> bool:
    """Return whether the hash is valid. Bots may pass 0; users only for themselves and for users they know."""
    if access_hash == 0:
        return account.bot or address == str(account.id) or int(address) in account.known
    return access_hash == identities.access_hash(account.id, address)
