"""A courier process that measures lag: `python -m bench.delivery.lag_courier REDIS_URL COUNT`.

The address of a recipient is the time (Unix ms) at which its delivery is due; an attempt records how late it is. The
lags (ms) are announced after COUNT attempts, or when the process is asked to stop.
"""

import asyncio
import sys
import time
from collections.abc import Sequence

from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce
from core.model.content import Feature
from core.redis.store import Store
from couriers.sending.interface import FOREVER, Message, Outcome, Sent
from couriers.sending.runtime import Runtime

CHANNEL = "lag"
PARCEL = 100


class LagCourier:
    """Implements couriers.sending.interface.Courier."""

    channel = CHANNEL
    account = "bench"
    batch = 1
    parcel = PARCEL
    remembers = FOREVER
    shows = frozenset[Feature]()

    def __init__(self, count: int) -> None:
        self._count = count
        self.lags: list[float] = []
        self.has_all = asyncio.Event()

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        now = time.time() * 1000
        self.lags += [now - float(message.address) for message in messages]
        if len(self.lags) >= self._count:
            self.has_all.set()
        return [Sent()] * len(messages)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


async def deliver(url: str, count: int) -> None:
    stop = stop_requested()
    store = await Store.open(url)
    courier = LagCourier(count)
    runtime = Runtime(store, CHANNEL)
    await runtime.add(courier)
    running = asyncio.create_task(runtime.run())
    announce(channel=CHANNEL)
    ends = [asyncio.create_task(event.wait()) for event in (courier.has_all, stop)]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    announce(lags=courier.lags)
    await stop.wait()
    runtime.stop()
    await running
    await store.close()


if __name__ == "__main__":
    asyncio.run(deliver(sys.argv[1], int(sys.argv[2])))
