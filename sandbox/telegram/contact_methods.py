"""The methods that find people (by id, phone and name) and supergroups (by id): `users`, `contacts`, `channels`.

Two failures can be ordered for a phone or a name: `not_registered` (nobody has it) and `retry_contacts` (Telegram
wants the import to be tried again later); importing and resolving as a whole can meet with `flood_wait`.
"""

from typing import Any

from telethon.tl import types

from sandbox.telegram import identities as persons
from sandbox.telegram import peers
from sandbox.telegram.hub import Call, channel, user
from sandbox.telegram.replies import Refusal, Reply

FLOODED_METHODS = frozenset({"importContacts", "resolvePhone", "resolveUsername"})
_FOR_BOTS = Refusal(400, "BOT_METHOD_INVALID")


def get_users(call: Call) -> Reply:
    """users.getUsers: a person that the account may not address comes back as UserEmpty."""
    return [_one(call, peer) for peer in call.request.id]


def _one(call: Call, peer: Any) -> Any:
    address = peers.address_of(call.account, peer)
    if isinstance(address, Refusal):
        return types.UserEmpty(getattr(peer, "user_id", 0))
    return user(call.account, int(address))


def get_full_user(call: Call) -> Reply:
    """users.getFullUser."""
    address = peers.address_of(call.account, call.request.id)
    if isinstance(address, Refusal):
        return Refusal(400, "USER_ID_INVALID")
    full = types.UserFull(
        int(address), settings=types.PeerSettings(), notify_settings=types.PeerNotifySettings(), common_chats_count=0
    )
    return types.users.UserFull(full, chats=[], users=[user(call.account, int(address))])


def get_channels(call: Call) -> Reply:
    """channels.getChannels: one that the account may not address spoils the whole call."""
    addresses = [peers.address_of(call.account, peer) for peer in call.request.id]
    if refused := next((address for address in addresses if isinstance(address, Refusal)), None):
        return refused
    return types.messages.Chats([channel(call.account, peer.channel_id) for peer in call.request.id])


def import_contacts(call: Call) -> Reply:
    """contacts.importContacts: who was found, and whose import must be repeated."""
    if call.account.bot:
        return _FOR_BOTS
    found, retry = {}, []
    for contact in call.request.contacts:
        identity = persons.by_phone(contact.phone)
        fault = _fault(call, identity)
        if fault == "retry_contacts":
            retry.append(contact.client_id)
        elif identity is not None and fault is None:
            found[contact.client_id] = identity
    return _imported(call, found, retry)


def _imported(call: Call, found: dict[int, int], retry: list[int]) -> Any:
    call.platform.meet(call.account, found.values())
    return types.contacts.ImportedContacts(
        imported=[types.ImportedContact(identity, client) for client, identity in found.items()],
        popular_invites=[],
        retry_contacts=retry,
        users=[user(call.account, identity) for identity in dict.fromkeys(found.values())],
    )


def _fault(call: Call, identity: int | None) -> str | None:
    names = frozenset({"not_registered", "retry_contacts"})
    fault = call.platform.world.fault("telegram", str(identity), call.method, names)
    return fault.name if fault else None


def resolve_phone(call: Call) -> Reply:
    """contacts.resolvePhone."""
    if call.account.bot:
        return _FOR_BOTS
    return _resolved(call, persons.by_phone(call.request.phone)) or Refusal(400, "PHONE_NOT_OCCUPIED")


def resolve_username(call: Call) -> Reply:
    """contacts.resolveUsername."""
    name = call.request.username
    identity = persons.by_username(name)
    if identity is None:
        return Refusal(400, "USERNAME_INVALID")
    return _resolved(call, identity, username=name) or Refusal(400, "USERNAME_NOT_OCCUPIED")


def _resolved(call: Call, identity: int | None, *, username: str | None = None) -> Any:
    if identity is None or not persons.exists(identity) or _fault(call, identity) == "not_registered":
        return None
    person = user(call.account, identity, username=username)
    return types.contacts.ResolvedPeer(types.PeerUser(identity), chats=[], users=[person])


def get_contacts(call: Call) -> Reply:
    """contacts.getContacts."""
    known = sorted(call.account.known)
    return types.contacts.Contacts(
        contacts=[types.Contact(identity, mutual=False) for identity in known],
        saved_count=0,
        users=[user(call.account, identity) for identity in known],
    )
