"""The methods that find users (by id, phone and name) and supergroups (by id): `users`, `contacts`, `channels`.

Rules can inject `not_registered` (the phone or name does not exist) and `retry_contacts` (the import must be repeated
later) for one user, and `flood_wait` for the methods in LOOKUP_METHODS.
"""

from typing import Any

from telethon.tl import types

from sandbox.telegram.methods import peers
from sandbox.telegram.methods.replies import Refusal, Reply
from sandbox.telegram.state import identities
from sandbox.telegram.state.hub import Call, channel, user

LOOKUP_METHODS = frozenset({"importContacts", "resolvePhone", "resolveUsername"})
_FOR_BOTS = Refusal(400, "BOT_METHOD_INVALID")


def get_users(call: Call) -> Reply:
    """Handle users.getUsers: return UserEmpty for a user that the account may not address."""
    return [_get_user(call, peer) for peer in call.request.id]


def _get_user(call: Call, peer: Any) -> Any:
    address = peers.address_of(call.account, peer)
    if isinstance(address, Refusal):
        return types.UserEmpty(getattr(peer, "user_id", 0))
    return user(call.account, int(address))


def get_full_user(call: Call) -> Reply:
    """Handle users.getFullUser."""
    address = peers.address_of(call.account, call.request.id)
    if isinstance(address, Refusal):
        return Refusal(400, "USER_ID_INVALID")
    full = types.UserFull(
        int(address), settings=types.PeerSettings(), notify_settings=types.PeerNotifySettings(), common_chats_count=0
    )
    return types.users.UserFull(full, chats=[], users=[user(call.account, int(address))])


def get_channels(call: Call) -> Reply:
    """Handle channels.getChannels: it fails if the account may not address one of the channels."""
    addresses = [peers.address_of(call.account, peer) for peer in call.request.id]
    if refused := next((address for address in addresses if isinstance(address, Refusal)), None):
        return refused
    return types.messages.Chats([channel(call.account, peer.channel_id) for peer in call.request.id])


def import_contacts(call: Call) -> Reply:
    """Handle contacts.importContacts: return the users found, and the contacts whose import must be repeated."""
    if call.account.bot:
        return _FOR_BOTS
    found, retry = {}, []
    for contact in call.request.contacts:
        user_id = identities.by_phone(contact.phone)
        fault = _fault(call, user_id)
        if fault == "retry_contacts":
            retry.append(contact.client_id)
        elif user_id is not None and fault is None:
            found[contact.client_id] = user_id
    return _imported(call, found, retry)


def _imported(call: Call, found: dict[int, int], retry: list[int]) -> Any:
    call.hub.add_known_users(call.account, found.values())
    return types.contacts.ImportedContacts(
        imported=[types.ImportedContact(user_id, client) for client, user_id in found.items()],
        popular_invites=[],
        retry_contacts=retry,
        users=[user(call.account, user_id) for user_id in dict.fromkeys(found.values())],
    )


def _fault(call: Call, user_id: int | None) -> str | None:
    names = frozenset({"not_registered", "retry_contacts"})
    fault = call.hub.state.fault("telegram", str(user_id), call.method, names)
    return fault.name if fault else None


def resolve_phone(call: Call) -> Reply:
    """Handle contacts.resolvePhone."""
    if call.account.bot:
        return _FOR_BOTS
    return _resolved(call, identities.by_phone(call.request.phone)) or Refusal(400, "PHONE_NOT_OCCUPIED")


def resolve_username(call: Call) -> Reply:
    """Handle contacts.resolveUsername."""
    name = call.request.username
    user_id = identities.by_username(name)
    if user_id is None:
        return Refusal(400, "USERNAME_INVALID")
    return _resolved(call, user_id, username=name) or Refusal(400, "USERNAME_NOT_OCCUPIED")


def _resolved(call: Call, user_id: int | None, *, username: str | None = None) -> Any:
    if user_id is None or not identities.exists(user_id) or _fault(call, user_id) == "not_registered":
        return None
    found = user(call.account, user_id, username=username)
    return types.contacts.ResolvedPeer(types.PeerUser(user_id), chats=[], users=[found])


def get_contacts(call: Call) -> Reply:
    """Handle contacts.getContacts."""
    known = sorted(call.account.known)
    return types.contacts.Contacts(
        contacts=[types.Contact(user_id, mutual=False) for user_id in known],
        saved_count=0,
        users=[user(call.account, user_id) for user_id in known],
    )
