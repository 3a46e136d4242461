"""Callers that send one message after another on one channel, and repeat each until it is accepted.

Every second message stands in one of the channel's lanes; the next of a lane is sent when the one before was accepted.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientError

from core.model.history_key import HistoryKey
from tests.system.crash.api_client import ApiClient, delivery

_PAUSE = 0.05
_ACCEPTED = 202
_LANES = 16


@dataclass(frozen=True)
class Moment:
    """When a message was accepted, by time.time."""

    at: float
    text: str
    shard: int


@dataclass
class Senders:
    """`underway`: how many calls of one channel may be, so that a slow machine gets fewer messages, not a backlog.
    `accepted`: text → id of the delivery, by channel. `moments`: those of all that was accepted, in order.
    """

    api: ApiClient
    rate: float
    underway: int = 16
    accepted: dict[str, dict[str, str]] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    is_over: bool = False

    async def run(self, channels: Sequence[str]) -> None:
        """Send at most `rate` messages a second on each channel until `is_over`."""
        await asyncio.gather(*(self._send(channel) for channel in channels))

    async def _send(self, channel: str) -> None:
        self.accepted[channel] = {}
        turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        sending: set[asyncio.Task[None]] = set()
        number, began = 0, time.monotonic()
        while not self.is_over:
            number += 1
            sending.add(task := asyncio.create_task(self._take_turn(channel, number, turns)))
            task.add_done_callback(sending.discard)
            await asyncio.sleep(began + number / self.rate - time.monotonic())
            while len(sending) >= self.underway:
                await asyncio.wait(sending, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*sending)

    async def _take_turn(self, channel: str, number: int, turns: defaultdict[str, asyncio.Lock]) -> None:
        text = f"{channel} {number}"
        body = delivery({channel: address(channel, number)}, text)
        if lane := lane_of(text):
            async with turns[lane]:  # first come, first served
                await self._post(channel, text, {**body, "lane": lane})
        else:
            await self._post(channel, text, body)

    async def _post(self, channel: str, text: str, body: dict[str, Any]) -> None:
        while True:
            try:
                status, response = await self.api.post(body, text)
            except (ClientError, OSError, TimeoutError):
                await asyncio.sleep(_PAUSE)
                continue
            if status == _ACCEPTED:
                self.accepted[channel][text] = response["id"]
                self.moments.append(Moment(time.time(), text, HistoryKey.parse(response["id"]).shard))
                return
            code = f"{status} {response.get('code', response)}"
            self.refused[code] = self.refused.get(code, 0) + 1
            await asyncio.sleep(_PAUSE)


def lane_of(text: str) -> str:
    """Return the lane of a message by its text; "" if it has none."""
    channel, number = text.split()
    return f"{channel} lane {int(number) // 2 % _LANES}" if int(number) % 2 else ""


def address(channel: str, number: int) -> str:
    """Return the contact of a person that the sandbox knows."""
    return {
        "telegram": f"{100001 + number % 50_000}",
        "telegram-bot": f"{100001 + number % 50_000}",
        "vk": f"{200001 + number % 50_000}",
        "max": f"{300001 + number % 50_000}",
        "sms": f"+7999{number % 900_000:07}",
        "email": f"p{number}@example.org",
    }[channel]
