"""The bare mechanism for comparison: keys with a time to live, and a subscriber to their `expired` events."""

import asyncio
import time
from collections.abc import Sequence

from redis.asyncio import Redis
from redis.asyncio.client import PubSub

PATIENCE = 90.0
"""Seconds after the last moment due for which events are waited for."""

_PAGE = 10_000
_PREFIX = "due:"
_MONTH_MS = 30 * 86_400_000


async def fill(redis: Redis, count: int) -> None:
    """Keys that will expire in a month, no two at the same moment."""
    for start in range(0, count, _PAGE):
        async with redis.pipeline(transaction=False) as pipe:
            for number in range(start, min(start + _PAGE, count)):
                pipe.set(f"pending:{number}", "", px=_MONTH_MS + number)
            await pipe.execute()


async def lags(redis: Redis, moments: Sequence[int]) -> list[float]:
    """How late (ms) each key was told to have expired; those that were not within the patience are missing."""
    async with redis.pubsub() as subscriber:
        await subscriber.subscribe("__keyevent@0__:expired")
        await subscriber.get_message(timeout=5)
        for moment in moments:
            await redis.set(f"{_PREFIX}{moment}", "", pxat=moment)
        return await _heard(subscriber, len(moments), moments[-1] / 1000 + PATIENCE)


async def _heard(subscriber: PubSub, count: int, until: float) -> list[float]:
    found: list[float] = []
    while len(found) < count and (left := until - time.time()) > 0:
        message = await subscriber.get_message(ignore_subscribe_messages=True, timeout=left)
        now = time.time() * 1000
        if message and message["data"].startswith(_PREFIX):
            found.append(now - float(message["data"].removeprefix(_PREFIX)))
        await asyncio.sleep(0)
    return found
