"""The common part of both SMS couriers: the check of the number and of the length, one message in a call."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import aiohttp

from couriers.sending import (
    NEVER,
    Content,
    Feature,
    Limits,
    Message,
    Outcome,
    Reason,
    Rejected,
    e164,
    sms_parts,
)
from couriers.sms.channel import CHANNEL

INVALID_ADDRESS = Rejected(Reason.RECIPIENT_UNREACHABLE, "not a phone number")


class SmsCourier(ABC):
    """Implements `couriers.sending.Courier`. Safe for concurrent attempts.

    `joined_by`: the name of what joins the parts of a message, at most `most_parts`.
    `numbers`: people can answer by SMS.
    """

    channel = "sms"
    batch = 1
    parcel = 100
    remembers = NEVER
    announces: Literal[True] = True
    shows = CHANNEL.shows
    account: str

    def __init__(
        self, session: aiohttp.ClientSession, price: str, most_parts: int, joined_by: str, *, numbers: bool
    ) -> None:
        self.limits = Limits(in_sms=CHANNEL.in_sms, price=price, numbers=numbers)
        self._session = session
        self._most_parts = most_parts
        self._joined_by = joined_by

    def as_text(self, content: Content) -> frozenset[Feature]:
        """Return all features: SMS shows buttons and files as text."""
        return CHANNEL.as_text

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        number = e164(message.address)
        if number is None:
            return INVALID_ADDRESS
        if (needed := sms_parts(message.text)) > self._most_parts:
            detail = f"{needed} parts, and {self._joined_by} joins {self._most_parts}"
            return Rejected(Reason.CONTENT_REFUSED, detail)
        return await self._send(message, number)

    @abstractmethod
    async def _send(self, message: Message, number: str) -> Outcome:
        """Make one attempt for a valid number; announce it when it has its connection."""

    async def close(self) -> None:
        await self._session.close()
