"""The processes that `bench lag` starts: `python -m bench.delivery.lag_programs PROGRAM …` with

courier REDIS_URL COUNT
    a courier that measures lag: the address of a recipient is the time (Unix ms) at which its delivery is due; an
    attempt records how late it is. The lags (ms) are announced after COUNT attempts, or when it is asked to stop
timer FIRST COUNT SPACING
    how late the machine itself wakes a process: sleeps until FIRST (Unix ms), then COUNT times in all every SPACING
    ms, and announces how late (ms) it woke each time
fill REDIS_URL COUNT
    enqueues deliveries far in the future; announces the seconds it took. Several processes fill faster than one,
    because they share the cost of Python
"""

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from bench.harness.delivery_samples import TEXT, order
from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.model.content import Feature
from core.model.delivery import NewDelivery, Recipient
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


async def wake(first: int, count: int, spacing: int) -> None:
    stop = stop_requested()
    lags = []
    for moment in range(first, first + count * spacing, spacing):
        await asyncio.sleep(moment / 1000 - time.time())
        lags.append(time.time() * 1000 - moment)
    announce(lags=lags)
    await stop.wait()


PAGE = 500
CONCURRENT_PAGES = 4
"""Pages in flight at once, so that the server always has the next one."""

DUE_IN = timedelta(days=30)


async def fill(url: str, count: int) -> None:
    store = await Store.open(url)
    deliveries = Deliveries(store, Channels(store))
    began = time.monotonic()
    pages = iter(range(0, count, PAGE))
    await asyncio.gather(*(enqueue_pages(deliveries, pages, count) for _ in range(CONCURRENT_PAGES)))
    announce(seconds=time.monotonic() - began)
    await store.close()


async def enqueue_pages(deliveries: Deliveries, pages: Iterator[int], count: int) -> None:
    """Enqueues the next page until none is left; the callers share the iterator."""
    at = datetime.now(UTC) + DUE_IN
    for start in pages:
        numbers = range(start, min(start + PAGE, count))
        await deliveries.enqueue_many([(pending(number, at), None) for number in numbers])


def pending(number: int, at: datetime) -> NewDelivery:
    """Return a delivery to one person. No two are due in the same millisecond."""
    recipient = Recipient(number, contacts={CHANNEL: [str(number)]})
    return order(TEXT, [recipient], [CHANNEL], at + timedelta(milliseconds=number))


PROGRAMS: Mapping[str, Callable[..., Coroutine[None, None, None]]] = {
    "courier": lambda url, count: deliver(url, int(count)),
    "timer": lambda first, count, spacing: wake(int(first), int(count), int(spacing)),
    "fill": lambda url, count: fill(url, int(count)),
}


if __name__ == "__main__":
    asyncio.run(PROGRAMS[sys.argv[1]](*sys.argv[2:]))
