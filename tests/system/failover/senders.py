"""Callers that send one message after another on one channel, and repeat each until it is accepted."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiohttp import ClientError

from tests.system.crash.api_client import ApiClient, delivery

_PAUSE = 0.05
# Calls of one channel that may be underway: a slow machine gets fewer messages, not a backlog.
_UNDERWAY = 16
_ACCEPTED = 202


@dataclass
class Senders:
    """`accepted`: text → id of the delivery, by channel. `moments`: when each was accepted, by time.time."""

    api: ApiClient
    rate: float
    accepted: dict[str, dict[str, str]] = field(default_factory=dict)
    moments: list[tuple[float, str]] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    is_over: bool = False

    async def run(self, channels: Sequence[str]) -> None:
        """Send at most `rate` messages a second on each channel until `is_over`."""
        await asyncio.gather(*(self._send(channel) for channel in channels))

    async def _send(self, channel: str) -> None:
        accepted = self.accepted.setdefault(channel, {})
        sending: set[asyncio.Task[None]] = set()
        number, began = 0, time.monotonic()
        while not self.is_over:
            number += 1
            sending.add(task := asyncio.create_task(self._post(channel, number, accepted)))
            task.add_done_callback(sending.discard)
            await asyncio.sleep(began + number / self.rate - time.monotonic())
            while len(sending) >= _UNDERWAY:
                await asyncio.wait(sending, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*sending)

    async def _post(self, channel: str, number: int, accepted: dict[str, str]) -> None:
        text = f"{channel} {number}"
        body = delivery({channel: address(channel, number)}, text)
        while True:
            try:
                status, response = await self.api.post(body, text)
            except (ClientError, OSError, TimeoutError):
                await asyncio.sleep(_PAUSE)
                continue
            if status == _ACCEPTED:
                accepted[text] = response["id"]
                self.moments.append((time.time(), text))
                return
            code = f"{status} {response.get('code', response)}"
            self.refused[code] = self.refused.get(code, 0) + 1
            await asyncio.sleep(_PAUSE)


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
