"""Sends messages over Telegram's MTProto. The table of Telegram's answers is in `answers.py`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from telethon.errors import PeerIdInvalidError, RandomIdDuplicateError
from telethon.tl.functions.messages import SendMessageRequest
from telethon.tl.types import InputPeerUser

from core.courier import FOREVER, Feature, Message, Outcome, Partly, ReadMark, Reason, Rejected, Sent, split_text
from couriers.telegram import answers
from couriers.telegram.connection import FAILURES, Connection
from couriers.telegram.peers import Peers
from couriers.telegram.session import LockedSession

RECONNECT_SECONDS = 15  # without a connection no read mark comes
MAX_REQUESTS = 3  # per attempt, while Telegram still processes an earlier one; Telethon pauses 2 s after each


class Telegram:
    """Implements `core.courier.Courier`. Safe for concurrent attempts; they share one connection."""

    channel = "telegram"
    batch = 1
    parcel = 100
    remembers = FOREVER
    shows = frozenset[Feature]()

    def __init__(
        self,
        account: str,
        connection: Connection,
        peers: Peers,
        session: LockedSession,
        marks: asyncio.Queue[ReadMark] | None = None,
    ) -> None:
        self.account = account
        self._connection, self._peers, self._session = connection, peers, session
        self._marks = marks
        self._is_closed = False

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        try:
            await self._connection.connect()
        except FAILURES as error:
            return answers.connect_outcome(error)
        try:
            return await self._send(await self._peers.find(message.address), message)
        except PeerIdInvalidError:
            # The stored access hash may be out of date.
            return await self._send_to_new_peer(message)

    async def _send_to_new_peer(self, message: Message) -> Outcome:
        try:
            return await self._send(await self._peers.look_up(message.address), message)
        except PeerIdInvalidError as error:
            return answers.send_outcome(error)

    async def _send(self, peer: Any, message: Message) -> Outcome:
        """Send the parts in order. After a failure the next attempt repeats them all, under the same random ids.

        Raises PeerIdInvalidError.
        """
        if isinstance(peer, Outcome):
            return peer
        ids: list[str] = []
        try:
            for part, text in enumerate(split_text(message.text)):
                ids.append(await self._send_part(peer, text, message.random_id(part)))
        except PeerIdInvalidError:
            if not ids:
                raise
            return Partly(Rejected(Reason.RECIPIENT_UNREACHABLE, answers.PEER_INVALID), _reference(ids))
        except FAILURES as error:
            outcome = answers.send_outcome(error)
            return Partly(outcome, _reference(ids)) if ids else outcome
        return self._sent(peer, ids)

    def _sent(self, peer: Any, ids: Sequence[str]) -> Sent:
        """Name the dialog if this account gets read marks of it: a person's account, of private chats."""
        if self._marks is None or not isinstance(peer, InputPeerUser) or not ids[-1]:
            return Sent(_reference(ids))
        return Sent(_reference(ids), str(peer.user_id), int(ids[-1]))

    async def read_marks(self) -> AsyncIterator[ReadMark]:
        """Emit Telegram's read marks. While none comes, keep the connection alive, also without messages to send."""
        while self._marks is not None:
            with suppress(*FAILURES):
                await self._connection.connect()
            try:
                mark = await asyncio.wait_for(self._marks.get(), RECONNECT_SECONDS)
            except TimeoutError:
                continue
            yield mark

    async def _send_part(self, peer: Any, text: str, random_id: int) -> str:
        """Return the message id, "" if Telegram only confirms that it has the message."""
        request = SendMessageRequest(peer, text, random_id=random_id)
        for _ in range(MAX_REQUESTS):
            try:
                return answers.message_id_in(await self._connection.request(request), random_id)
            except RandomIdDuplicateError:
                continue
        return ""

    async def close(self) -> None:
        """Disconnect and release the session. Only once: Telethon reopens the file to close it again, and by then
        another process may use it.
        """
        if not self._is_closed:
            self._is_closed = True
            await self._connection.close()
            self._session.release()


def _reference(ids: Sequence[str]) -> str:
    """The message ids that are known, of the parts in their order."""
    return ",".join(message_id for message_id in ids if message_id)
