"""A courier process whose courier looks at the clock: `python -m bench.delivery.stopwatch REDIS_URL COUNT`.

An address is the moment (Unix ms) at which its delivery is due. The lags of the first COUNT attempts are announced, in
ms; without them all, those there are when it is asked to end.
"""

import asyncio
import sys
import time
from collections.abc import Sequence

from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce
from core.courier.interface import FOREVER, Message, Outcome, Sent
from core.courier.runtime import Runtime
from core.redis.store import Store

CHANNEL = "stopwatch"
PARCEL = 100


class Stopwatch:
    """A courier of core.courier.interface."""

    channel = CHANNEL
    account = "bench"
    batch = 1
    parcel = PARCEL
    remembers = FOREVER

    def __init__(self, count: int) -> None:
        self._count = count
        self.lags: list[float] = []
        self.all_there = asyncio.Event()

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        now = time.time() * 1000
        self.lags += [now - float(message.address) for message in messages]
        if len(self.lags) >= self._count:
            self.all_there.set()
        return [Sent()] * len(messages)

    async def close(self) -> None:
        """Nothing is held."""


async def deliver(url: str, count: int) -> None:
    stop = stop_requested()
    store = await Store.open(url)
    stopwatch = Stopwatch(count)
    runtime = Runtime(store, stopwatch)
    running = asyncio.create_task(runtime.run())
    announce(channel=CHANNEL)
    ends = [asyncio.create_task(event.wait()) for event in (stopwatch.all_there, stop)]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    announce(lags=stopwatch.lags)
    await stop.wait()
    runtime.stop()
    await running
    await store.close()


if __name__ == "__main__":
    asyncio.run(deliver(sys.argv[1], int(sys.argv[2])))
