"""Finds whom an address means: "100001" and "-100123" (ids), "@name", "+79991112233".

Telegram wants an access hash beside an id, which each account gets when it meets the person; the session file keeps
them. A bot may leave the hash 0 for whoever started it, so its ids cost no question at all, not even to the file; a
user's account asks once for each. Source: core.telegram.org/api/peers, "Access hash".
"""

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from telethon import TelegramClient, utils
from telethon.tl import functions, types

from core.courier import Deferred, Outcome, Reason, Rejected, Scope
from couriers.telegram import answers
from couriers.telegram.line import FAILURES
from couriers.telegram.phones import Owner, Phones

_ID = re.compile(r"-?[1-9][0-9]{0,14}")
AGAIN = timedelta(hours=1)  # Telegram puts an import off without saying for how long

Ask = Callable[[Any], Awaitable[Any]]
Found = Any  # an InputPeer, or the Outcome that ends the attempt


class Peers:
    """`find` uses what is known already, `find_afresh` asks Telegram anew."""

    def __init__(self, client: TelegramClient, ask: Ask, phones: Phones, *, bot: bool) -> None:
        self._client, self._ask, self._phones, self._bot = client, ask, phones, bot

    async def find(self, address: str) -> Found:
        if address.startswith("+"):
            return await self._by_phone(address)
        if address.startswith("@"):
            return self._named(address[1:].lower()) or await self._attempted(self._by_name(address))
        if not _ID.fullmatch(address):
            return nobody("not an id, a @name or a phone number")
        identity = int(address)
        if self._bot and identity > 0:
            return types.InputPeerUser(identity, access_hash=0)
        return self._met(identity) or await self._attempted(self._by_id(identity))

    async def find_afresh(self, address: str) -> Found:
        """The same by a new question, after Telegram did not accept what `find` gave."""
        if address.startswith("+"):
            return await self._attempted(self._import(address))
        if address.startswith("@"):
            return await self._attempted(self._by_name(address))
        return await self._attempted(self._by_id(int(address)))

    async def _attempted(self, question: Awaitable[Found]) -> Found:
        try:
            return await question
        except FAILURES as error:
            return answers.looking_up(error)

    def _met(self, identity: int) -> Found:
        """The peer as the session file knows it, or None.

        The session's own search would take a group of the same number for a person, or a name that somebody gave
        himself for a username. So only exact rows count.
        """
        return _peer_of(self._client.session.get_entity_rows_by_id(identity, exact=True))

    def _named(self, username: str) -> Found:
        return _peer_of(self._client.session.get_entity_rows_by_username(username))

    async def _by_id(self, identity: int) -> Found:
        peer = utils.get_peer(identity)
        if isinstance(peer, types.PeerChat):
            return types.InputPeerChat(peer.chat_id)
        if isinstance(peer, types.PeerChannel):
            wanted = types.InputChannel(peer.channel_id, access_hash=0)
            return _peer((await self._ask(functions.channels.GetChannelsRequest([wanted]))).chats)
        return _peer(await self._ask(functions.users.GetUsersRequest([types.InputUser(identity, access_hash=0)])))

    async def _by_name(self, address: str) -> Found:
        found = await self._ask(functions.contacts.ResolveUsernameRequest(address.removeprefix("@")))
        return _peer([*found.users, *found.chats])

    async def _by_phone(self, phone: str) -> Found:
        if owner := self._phones.owner(phone):
            return types.InputPeerUser(owner.user, owner.access_hash)
        if self._bot:
            return nobody("a bot cannot look up phone numbers")
        return nobody("nobody has this number") if self._phones.nobodys(phone) else await self.find_afresh(phone)

    async def _import(self, phone: str) -> Found:
        contact = types.InputPhoneContact(client_id=0, phone=phone, first_name=phone, last_name="")
        answer = await self._ask(functions.contacts.ImportContactsRequest([contact]))
        if answer.retry_contacts:
            return Deferred(Reason.THROTTLED, AGAIN, Scope.RECIPIENT, "retry_contacts")
        return self._imported(phone, answer.users)

    def _imported(self, phone: str, users: list[Any]) -> Found:
        owner = Owner(users[0].id, users[0].access_hash) if users else None
        self._phones.remember(phone, owner)
        return types.InputPeerUser(owner.user, owner.access_hash) if owner else nobody("nobody has this number")


def nobody(detail: str) -> Outcome:
    return Rejected(Reason.RECIPIENT_UNREACHABLE, detail)


def _peer_of(row: tuple[int, int] | None) -> Found:
    if row is None:
        return None
    identity, kind = utils.resolve_id(row[0])
    if kind is types.PeerChat:
        return types.InputPeerChat(identity)
    return (types.InputPeerUser if kind is types.PeerUser else types.InputPeerChannel)(identity, row[1])


def _peer(found: list[Any]) -> Found:
    """The first of those found; Telegram shows a person that the account may not address as an empty one."""
    if not found or isinstance(found[0], types.UserEmpty | types.ChatEmpty):
        return nobody(answers.PEER_INVALID)
    return utils.get_input_peer(found[0])
