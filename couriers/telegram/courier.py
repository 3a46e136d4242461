"""One attempt at one message over Telegram's MTProto. The table of answers is in `answers.py`.

Before: core.courier.runtime. After: Telegram.
"""

from collections.abc import Sequence
from typing import Any

from telethon.errors import PeerIdInvalidError, RandomIdDuplicateError
from telethon.tl.functions.messages import SendMessageRequest

from core.courier import FOREVER, Message, Outcome, Sent
from couriers.telegram import answers
from couriers.telegram.line import FAILURES, Line
from couriers.telegram.peers import Peers
from couriers.telegram.session import Held
from couriers.telegram.split import split

ASKED = 3  # how often one attempt asks with a random id whose first call still runs; Telethon pauses 2 s after each


class Telegram:
    """A courier of core.courier.interface. Safe for many attempts at once over its one connection."""

    channel = "telegram"
    batch = 1
    parcel = 100
    remembers = FOREVER

    def __init__(self, account: str, line: Line, peers: Peers, held: Held) -> None:
        self.account = account
        self._line, self._peers, self._held = line, peers, held
        self._closed = False

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        try:
            await self._line.up()
        except FAILURES as error:
            return answers.connecting(error)
        return await self._to(await self._peers.find(message.address), message)

    async def _to(self, found: Any, message: Message) -> Outcome:
        """Send; what Telegram does not know as a peer is looked up once more, in case an old access hash was kept."""
        try:
            return await self._sent(found, message)
        except PeerIdInvalidError:
            return await self._again(await self._peers.find_afresh(message.address), message)

    async def _again(self, found: Any, message: Message) -> Outcome:
        try:
            return await self._sent(found, message)
        except PeerIdInvalidError as error:
            return answers.sending(error)

    async def _sent(self, found: Any, message: Message) -> Outcome:
        """Send the parts in order. Those before a failure are repeated with the next attempt, under their own ids."""
        if isinstance(found, Outcome):
            return found
        try:
            parts = enumerate(split(message.text))
            numbers = [await self._part(found, part, message.random_id(number)) for number, part in parts]
        except PeerIdInvalidError:
            raise
        except FAILURES as error:
            return answers.sending(error)
        return Sent(",".join(number for number in numbers if number))

    async def _part(self, peer: Any, text: str, random_id: int) -> str:
        """The number of the message, "" where Telegram keeps saying that it has it without naming the number."""
        request = SendMessageRequest(peer, text, random_id=random_id)
        for _ in range(ASKED):
            try:
                return answers.number_in(await self._line.ask(request), random_id)
            except RandomIdDuplicateError:
                continue
        return ""

    async def close(self) -> None:
        """Give the session back. Once: Telethon opens the file again to close it, and another process may have it."""
        if not self._closed:
            self._closed = True
            await self._line.close()
            self._held.release()
