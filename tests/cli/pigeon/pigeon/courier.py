"""Sends a message by a pigeon: one request to the loft."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from couriers.sending import NEVER, Feature, Limits, Message, Outcome, Reason, Rejected, Sent, Unknown, split_text

LONGEST = 40


@dataclass(frozen=True)
class Settings:
    """The fields are ADA_PIGEON_URL and so on."""

    url: str
    token: str = field(repr=False)
    ring: str = field(default="", repr=False)  # by which an arriving pigeon is recognised
    callback_url: str | None = field(default=None, metadata={"setting": "ADA_PUBLIC_URL"})  # where the loft reports


class Pigeon:
    """Implements `couriers.sending.Courier`."""

    channel = "pigeon"
    batch = 1
    parcel = 10
    remembers = NEVER
    shows = frozenset[Feature]()
    limits = Limits(text=LONGEST, splits=True)
    account = "loft"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session = aiohttp.ClientSession(headers={"Authorization": settings.token})

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._send(message) for message in messages]

    async def _send(self, message: Message) -> Outcome:
        outcomes = [await self._carry(message, part) for part in split_text(message.text, LONGEST)]
        return outcomes[-1]

    async def _carry(self, message: Message, text: str) -> Outcome:
        body = {"to": message.address, "text": text, "report": message.report_url}
        try:
            async with self._session.post(f"{self._settings.url}/send", json=body) as response:
                return Sent(await response.text()) if response.ok else Rejected(Reason.RECIPIENT_UNREACHABLE, "no loft")
        except (aiohttp.ClientError, OSError):
            return Unknown()

    async def close(self) -> None:
        await self._session.close()


async def open(settings: Settings, directory: Path) -> Pigeon:  # noqa: A001 - the interface's name
    return Pigeon(settings)
