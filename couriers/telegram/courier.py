"""Sends messages over Telegram's MTProto. The table of Telegram's answers is in `outcomes.py`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from telethon.errors import (
    BadRequestError,
    ForbiddenError,
    MessageNotModifiedError,
    PeerIdInvalidError,
    RandomIdDuplicateError,
)
from telethon.tl.functions.users import GetUsersRequest
from telethon.tl.types import InputPeerUser, InputUserSelf

from couriers.sending import (
    EVERY_FEATURE,
    FOREVER,
    SEND_REPLY,
    Content,
    Feature,
    Limits,
    Message,
    Outcome,
    Partly,
    ReadMark,
    Reason,
    ReceivedText,
    Rejected,
    Sent,
    SetupError,
)
from couriers.telegram import outcomes
from couriers.telegram.channel import CHANNEL, KEYBOARD
from couriers.telegram.connection import FAILURES, LockedSession, TelegramConnection
from couriers.telegram.content import (
    LONGEST_CAPTION,
    LONGEST_TEXT,
    TelegramRequests,
    TelegramUploads,
    content_requests,
    edit_request,
    remove_request,
    text_requests,
)
from couriers.telegram.peers import Peers
from couriers.telegram.receive import MtprotoBot

RECONNECT_SECONDS = 15  # without a connection no read mark comes
REFUSALS = (BadRequestError, ForbiddenError)
MAX_REQUESTS = 3  # per attempt, while Telegram still processes an earlier one; Telethon pauses 2 s after each


class Telegram:
    """Implements `couriers.sending.Courier`. Safe for concurrent attempts; they share one connection."""

    channel = "telegram"
    batch = 1
    parcel = 100
    remembers = FOREVER

    def __init__(
        self,
        account: str,
        connection: TelegramConnection,
        peers: Peers,
        session: LockedSession,
        marks: asyncio.Queue[ReadMark] | None = None,
        texts: asyncio.Queue[ReceivedText] | None = None,
        *,
        bot: MtprotoBot | None = None,
    ) -> None:
        self.account = account
        self.bot = bot
        self.replies_in = self.channel
        self._connection, self._peers, self._session = connection, peers, session
        self._marks, self._texts = marks, texts
        self._uploads = TelegramUploads(connection.request)
        self.shows = EVERY_FEATURE | {Feature.ANSWER} if bot else CHANNEL.shows
        keyboard = KEYBOARD if bot else None
        self.limits = Limits(
            text=LONGEST_TEXT, caption=LONGEST_CAPTION, splits=True, keyboard=keyboard, follows_group=True
        )
        self._is_closed = False

    def is_account_of(self, token: str) -> bool:
        """Return whether a token is of the same bot."""
        return self.bot is not None and token.partition(":")[0] == self.account

    def leave_replies_to(self, channel: str) -> None:
        """Let another channel with the same bot get what people write, and what they press."""
        self.bot, self.replies_in, self.shows = None, channel, EVERY_FEATURE

    def as_text(self, content: Content) -> frozenset[Feature]:
        is_question = any(one.data.startswith(SEND_REPLY) for row in content.inline for one in row)
        if is_question and Feature.INLINE not in self.shows:  # an account has no buttons: a number answers
            return frozenset({Feature.INLINE})
        return KEYBOARD.as_text(content) & self.shows

    async def test(self) -> None:
        try:
            await self._connection.connect()
            await self._connection.request(GetUsersRequest([InputUserSelf()]))
        except FAILURES as error:
            raise SetupError(f"Telegram does not accept the account: {error}") from error

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        try:
            await self._connection.connect()
        except FAILURES as error:
            return outcomes.connect_outcome(error)
        try:
            return await self._send(await self._peers.find(message.address), message)
        except PeerIdInvalidError:
            # The stored access hash may be out of date.
            return await self._send_to_new_peer(message)

    async def _send_to_new_peer(self, message: Message) -> Outcome:
        try:
            return await self._send(await self._peers.look_up(message.address), message)
        except PeerIdInvalidError as error:
            return outcomes.send_outcome(error)

    async def _send(self, peer: Any, message: Message) -> Outcome:
        """Remove what is to be removed, then edit or send. Raises PeerIdInvalidError."""
        if isinstance(peer, Outcome):
            return peer
        content = message.content
        if content is None:
            return await self._send_parts(peer, text_requests(peer, message))
        try:
            is_removed = await self._remove(peer, content)
            edited = await self._edit(peer, message, content)
            planned = TelegramRequests(()) if edited else await content_requests(peer, message, content, self._uploads)
        except PeerIdInvalidError:
            raise
        except FAILURES as error:
            return outcomes.lookup_outcome(error)
        outcome = edited or await self._send_content(peer, content, planned)
        if is_removed or not isinstance(outcome, Sent):
            return outcome
        return replace(outcome, not_shown=(*outcome.not_shown, Feature.REMOVE))

    async def _send_content(self, peer: Any, content: Content, planned: TelegramRequests) -> Outcome:
        """Send the content of a message. Raises PeerIdInvalidError."""
        if not planned.requests:
            return Rejected(Reason.CONTENT_REFUSED, f"nothing is left without {', '.join(planned.not_shown)}")
        outcome = await self._send_parts(peer, planned)
        if isinstance(outcome, Sent) and content.reply_to and planned.requests[0].reply_to is None:
            return replace(outcome, not_shown=(*outcome.not_shown, Feature.REPLY_TO))
        return outcome

    async def _remove(self, peer: Any, content: Content) -> bool:
        """Remove messages; return False if Telegram refuses it. Messages that are gone are removed. Raises FAILURES."""
        request = remove_request(peer, content)
        if request is None:
            return not content.remove
        try:
            await self._connection.request(request)
        except PeerIdInvalidError:
            raise
        except REFUSALS:
            return False
        return True

    async def _edit(self, peer: Any, message: Message, content: Content) -> Outcome | None:
        """Edit a message; None if it cannot be edited, so that a new one is sent. A repeat changes nothing.

        Raises PeerIdInvalidError.
        """
        if (found := edit_request(peer, message, content)) is None:
            return None
        request, not_shown = found
        try:
            await self._connection.request(request)
        except PeerIdInvalidError:
            raise
        except MessageNotModifiedError:
            pass
        except REFUSALS:
            return None
        except FAILURES as error:
            return outcomes.send_outcome(error)
        return Sent(str(request.id), not_shown=not_shown)

    async def _send_parts(self, peer: Any, planned: TelegramRequests) -> Outcome:
        """Send the parts in order. After a failure the next attempt repeats them all, under the same random ids.

        Raises PeerIdInvalidError.
        """
        ids: list[str] = []
        try:
            for request in planned.requests:
                ids += await self._send_part(request)
        except PeerIdInvalidError:
            if not ids:
                raise
            return Partly(Rejected(Reason.RECIPIENT_UNREACHABLE, outcomes.PEER_INVALID), _reference(ids))
        except FAILURES as error:
            outcome = outcomes.send_outcome(error)
            return Partly(outcome, _reference(ids)) if ids else outcome
        return replace(self._sent(peer, ids), not_shown=planned.not_shown)

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

    async def received_texts(self) -> AsyncIterator[ReceivedText]:
        """Emit what people write to a person's account. What comes while this process is not connected is not seen."""
        while self._texts is not None:
            text = await self._texts.get()
            yield replace(text, address=self._peers.address_of(text.address))

    async def _send_part(self, request: Any) -> list[str]:
        """Return the ids of its messages, "" for one of which Telegram only confirms that it has it.

        If the message to reply to is gone, the request is repeated as no reply.
        """
        random_ids = _random_ids(request)
        for _ in range(MAX_REQUESTS):
            try:
                answer = await self._connection.request(request)
                return [outcomes.message_id_in(answer, random_id) for random_id in random_ids]
            except RandomIdDuplicateError:
                continue
            except BadRequestError as error:
                if not request.reply_to or outcomes.name_of(error) not in outcomes.NO_MESSAGE_TO_REPLY_TO:
                    raise
                request.reply_to = None
        return [""] * len(random_ids)

    async def close(self) -> None:
        """Disconnect and release the session. Only once: Telethon reopens the file to close it again, and by then
        another process may use it.
        """
        if not self._is_closed:
            self._is_closed = True
            await self._connection.close()
            self._session.release()


def _random_ids(request: Any) -> list[int]:
    """Return the random id of each message that a request sends: a group of files has several."""
    group = getattr(request, "multi_media", None)
    return [one.random_id for one in group] if group else [request.random_id]


def _reference(ids: Sequence[str]) -> str:
    """Return the message ids that are known, of the parts in their order."""
    return ",".join(message_id for message_id in ids if message_id)
