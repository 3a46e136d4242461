"""A process that enqueues deliveries far in the future: `python -m bench.delivery.fill_pending REDIS_URL COUNT`.

Announces the seconds it took. Several processes fill faster than one, because they share the cost of Python.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from bench.delivery.lag_courier import CHANNEL
from bench.harness.delivery_samples import SHORT, order
from cli.processes.supervisor import announce
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.model.delivery import NewDelivery, Recipient
from core.redis.store import Store

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
    return order(SHORT, [recipient], [CHANNEL], at + timedelta(milliseconds=number))


if __name__ == "__main__":
    asyncio.run(fill(sys.argv[1], int(sys.argv[2])))
