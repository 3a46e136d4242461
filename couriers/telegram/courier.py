"""Sends messages over Telegram's MTProto. The table of Telegram's answers is in `answers.py`."""

from collections.abc import Sequence
from typing import Any

from telethon.errors import PeerIdInvalidError, RandomIdDuplicateError
from telethon.tl.functions.messages import SendMessageRequest

from core.courier import FOREVER, Message, Outcome, Partly, Reason, Rejected, Sent, split_text
from couriers.telegram import answers
from couriers.telegram.connection import FAILURES, Connection
from couriers.telegram.peers import Peers
from couriers.telegram.session import LockedSession

MAX_REQUESTS = 3  # per attempt, while Telegram still processes an earlier one; Telethon pauses 2 s after each


class Telegram:
    """Implements `core.courier.Courier`. Safe for concurrent attempts; they share one connection."""

    channel = "telegram"
    batch = 1
    parcel = 100
    remembers = FOREVER

    def __init__(self, account: str, connection: Connection, peers: Peers, session: LockedSession) -> None:
        self.account = account
        self._connection, self._peers, self._session = connection, peers, session
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
        return Sent(_reference(ids))

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
