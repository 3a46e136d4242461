"""Finds the peer of an address: "100001" and "-100123" (ids), "@name", "+79991112233".

Telegram requires an access hash with an id. Each account receives its own when it first sees the peer; the session file
keeps them. A bot may pass the hash 0 for a person who started it, so an id costs it no request; a user's account makes
one request for each peer. Source: core.telegram.org/api/peers, "Access hash".
"""

import json
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from telethon import TelegramClient, utils
from telethon.tl import functions, types

from couriers.sending import Deferred, Outcome, Reason, Rejected, Scope, e164
from couriers.telegram import outcomes
from couriers.telegram.connection import FAILURES

DAY = 24 * 3600  # seconds

_ID = re.compile(r"-?[1-9][0-9]{0,14}")
IMPORT_AGAIN_AFTER = timedelta(hours=1)  # Telegram postpones an import without naming a time
NOT_REGISTERED = Rejected(Reason.RECIPIENT_UNREACHABLE, "the number is not registered")
Request = Callable[[Any], Awaitable[Any]]
Found = Any  # an InputPeer, or the Outcome that ends the attempt


@dataclass(frozen=True, slots=True)
class PhoneOwner:
    """The user who has a number: the id, and the access hash that this account needs."""

    user: int
    access_hash: int


@dataclass(frozen=True, slots=True)
class _Entry:
    phone: str
    owner: PhoneOwner | None  # None: not registered
    at: float  # unix seconds


class PhoneCache:
    """Stores which user has a phone number: Telegram limits lookups by phone strictly, and a session does not keep
    them. An unregistered number is looked up again after a day: its owner may have joined. The file has one JSON entry
    per line; the last entry of a number counts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, _Entry] = {}
        for entry in _read(path):
            self._add(entry)

    def owner(self, phone: str) -> PhoneOwner | None:
        """Return the owner, None if it is not known."""
        entry = self._entries.get(phone)
        return entry.owner if entry else None

    def phone_of(self, user: int) -> str:
        """Return the number by which a user was looked up last, "" for none."""
        known = reversed(self._entries.values())
        return next((one.phone for one in known if one.owner and one.owner.user == user), "")

    def is_unregistered(self, phone: str) -> bool:
        """Return whether Telegram reported within the last day that the number is not registered."""
        entry = self._entries.get(phone)
        return entry is not None and entry.owner is None and time.time() - entry.at < DAY

    def store(self, phone: str, owner: PhoneOwner | None) -> None:
        entry = _Entry(phone, owner, time.time())
        self._add(entry)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry)) + "\n")

    def _add(self, entry: _Entry) -> None:
        """Add an entry behind all others."""
        self._entries.pop(entry.phone, None)
        self._entries[entry.phone] = entry


def _read(path: Path) -> list[_Entry]:
    if not path.exists():
        return []
    return [entry for line in path.read_text(encoding="utf-8").splitlines() if (entry := _parse(line))]


def _parse(line: str) -> _Entry | None:
    """Return the entry, None for a line that a crash cut short."""
    try:
        fields = json.loads(line)
        return _Entry(fields["phone"], PhoneOwner(**fields["owner"]) if fields["owner"] else None, fields["at"])
    except (ValueError, KeyError, TypeError):
        return None


class Peers:
    """`find` uses what is stored; `look_up` always asks Telegram."""

    def __init__(self, client: TelegramClient, request: Request, phones: PhoneCache, *, bot: bool) -> None:
        self._client, self._request, self._phones, self._bot = client, request, phones, bot

    def address_of(self, user: str) -> str:
        """Return the address by which a person was written to: the telephone, otherwise the id."""
        return self._phones.phone_of(int(user)) or user

    async def find(self, address: str) -> Found:
        if address.startswith("+"):
            phone = e164(address)
            return await self._find_phone(phone) if phone else unreachable("not a phone number")
        if address.startswith("@"):
            return self._stored_by_name(address[1:].lower()) or await self.look_up(address)
        if not _ID.fullmatch(address):
            return unreachable("not an id, a @name or a phone number")
        peer_id = int(address)
        if self._bot and peer_id > 0:
            return types.InputPeerUser(peer_id, access_hash=0)
        return self._stored_by_id(peer_id) or await self.look_up(address)

    async def look_up(self, address: str) -> Found:
        """Ask Telegram for the peer of an address that has a valid form."""
        try:
            if address.startswith("+"):
                return await self._import_contact(e164(address) or address)
            if address.startswith("@"):
                return await self._resolve_username(address)
            return await self._resolve_id(int(address))
        except FAILURES as error:
            return outcomes.lookup_outcome(error)

    def _stored_by_id(self, peer_id: int) -> Found:
        """Return the peer from the session file, or None.

        Only exact rows count: the session's own search would accept a person for a group of the same number, and a
        display name for a username.
        """
        return _peer_of_row(self._client.session.get_entity_rows_by_id(peer_id, exact=True))

    def _stored_by_name(self, username: str) -> Found:
        return _peer_of_row(self._client.session.get_entity_rows_by_username(username))

    async def _resolve_id(self, peer_id: int) -> Found:
        peer = utils.get_peer(peer_id)
        if isinstance(peer, types.PeerChat):
            return types.InputPeerChat(peer.chat_id)
        if isinstance(peer, types.PeerChannel):
            channel = types.InputChannel(peer.channel_id, access_hash=0)
            return _first_peer((await self._request(functions.channels.GetChannelsRequest([channel]))).chats)
        user = types.InputUser(peer_id, access_hash=0)
        return _first_peer(await self._request(functions.users.GetUsersRequest([user])))

    async def _resolve_username(self, address: str) -> Found:
        found = await self._request(functions.contacts.ResolveUsernameRequest(address.removeprefix("@")))
        return _first_peer([*found.users, *found.chats])

    async def _find_phone(self, phone: str) -> Found:
        if owner := self._phones.owner(phone):
            return types.InputPeerUser(owner.user, owner.access_hash)
        if self._bot:
            return unreachable("a bot cannot look up phone numbers")
        return NOT_REGISTERED if self._phones.is_unregistered(phone) else await self.look_up(phone)

    async def _import_contact(self, phone: str) -> Found:
        contact = types.InputPhoneContact(client_id=0, phone=phone, first_name=phone, last_name="")
        answer = await self._request(functions.contacts.ImportContactsRequest([contact]))
        if answer.retry_contacts:
            return Deferred(Reason.THROTTLED, IMPORT_AGAIN_AFTER, Scope.RECIPIENT, "retry_contacts")
        return self._imported_peer(phone, answer.users)

    def _imported_peer(self, phone: str, users: list[Any]) -> Found:
        owner = PhoneOwner(users[0].id, users[0].access_hash) if users else None
        self._phones.store(phone, owner)
        return types.InputPeerUser(owner.user, owner.access_hash) if owner else NOT_REGISTERED


def unreachable(detail: str) -> Outcome:
    return Rejected(Reason.RECIPIENT_UNREACHABLE, detail)


def _peer_of_row(row: tuple[int, int] | None) -> Found:
    if row is None:
        return None
    peer_id, kind = utils.resolve_id(row[0])
    if kind is types.PeerChat:
        return types.InputPeerChat(peer_id)
    return (types.InputPeerUser if kind is types.PeerUser else types.InputPeerChannel)(peer_id, row[1])


def _first_peer(found: list[Any]) -> Found:
    """Return the first peer. Telegram returns UserEmpty for a person that the account may not address."""
    if not found or isinstance(found[0], types.UserEmpty | types.ChatEmpty):
        return unreachable(outcomes.PEER_INVALID)
    return utils.get_input_peer(found[0])
