"""A process that enqueues deliveries far in the future: `python -m bench.delivery.fill REDIS_URL COUNT`. Announces
its seconds.

Several side by side fill faster than one: what Python costs is shared among them, what the scripts cost is not.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from bench.delivery.samples import SHORT, order
from bench.delivery.stopwatch import CHANNEL
from cli.processes.supervisor import announce
from core.history.channels import Channels
from core.history.deliveries import Deliveries
from core.model.delivery import Order, Recipient
from core.redis.store import Store

PAGE = 500
UNDER_WAY = 4
"""Pages in flight at once, so that the server always has the next one."""

FAR = timedelta(days=30)


async def fill(url: str, count: int) -> None:
    store = await Store.open(url)
    histories = Deliveries(store, Channels(store))
    began = time.monotonic()
    pages = iter(range(0, count, PAGE))
    await asyncio.gather(*(enqueue_pages(histories, pages, count) for _ in range(UNDER_WAY)))
    announce(seconds=time.monotonic() - began)
    await store.close()


async def enqueue_pages(histories: Deliveries, pages: Iterator[int], count: int) -> None:
    """Takes pages that nobody else has taken."""
    at = datetime.now(UTC) + FAR
    for start in pages:
        await histories.enqueue_many([(pending(number, at), None) for number in range(start, min(start + PAGE, count))])


def pending(number: int, at: datetime) -> Order:
    """No two are due at the same moment, as in life."""
    recipient = Recipient(number, contacts={CHANNEL: [str(number)]})
    return order(SHORT, [recipient], [CHANNEL], at + timedelta(milliseconds=number))


if __name__ == "__main__":
    asyncio.run(fill(sys.argv[1], int(sys.argv[2])))
