"""Keys with a time to live and a subscriber to their `expired` events: the mechanism that Ada is compared with."""

import asyncio
import time
from collections.abc import Sequence

from redis.asyncio import Redis
from redis.asyncio.client import PubSub

TIMEOUT = 90.0
"""Seconds after the last due time in which an event still counts."""

_PAGE = 10_000
_PREFIX = "due:"
_MONTH_MS = 30 * 86_400_000


async def fill(redis: Redis, count: int) -> None:
    """Sets keys that expire in a month, no two in the same millisecond."""
    for start in range(0, count, _PAGE):
        async with redis.pipeline(transaction=False) as pipe:
            for number in range(start, min(start + _PAGE, count)):
                pipe.set(f"pending:{number}", "", px=_MONTH_MS + number)
            await pipe.execute()


async def lags(redis: Redis, due_times: Sequence[int]) -> list[float]:
    """Returns how late (ms) the event of each key was. Events that did not come within TIMEOUT are missing."""
    async with redis.pubsub() as subscriber:
        await subscriber.subscribe("__keyevent@0__:expired")
        await subscriber.get_message(timeout=5)
        for due in due_times:
            await redis.set(f"{_PREFIX}{due}", "", pxat=due)
        return await _receive(subscriber, len(due_times), due_times[-1] / 1000 + TIMEOUT)


async def _receive(subscriber: PubSub, count: int, until: float) -> list[float]:
    lags: list[float] = []
    while len(lags) < count and (left := until - time.time()) > 0:
        message = await subscriber.get_message(ignore_subscribe_messages=True, timeout=left)
        now = time.time() * 1000
        if message and message["data"].startswith(_PREFIX):
            lags.append(now - float(message["data"].removeprefix(_PREFIX)))
        await asyncio.sleep(0)
    return lags
