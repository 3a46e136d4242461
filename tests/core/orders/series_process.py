"""A process that sends series, and kills itself: before it sends, behind that, or never.

python -m tests.core.orders.series_process URL SHARDS OFFSET_MS before|behind|never
"""

import asyncio
import os
import signal
import sys
from functools import partial
from typing import Any

from core.model.delivery import Accepted
from core.orders.series import SeriesSender
from core.redis.store import Store
from core.services import open_services
from delivery.api.deliveries.series import order_of
from delivery.http.options import Options


class DeadlySending:
    """Sending that is killed."""

    def __init__(self, sending: Any, when: str) -> None:
        self._sending = sending
        self._when = when

    async def send(self, *order: Any) -> Accepted:
        if self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        accepted: Accepted = await self._sending.send(*order)
        if self._when == "behind":
            os.kill(os.getpid(), signal.SIGKILL)
        return accepted


async def main(url: str, shards: str, offset: str, when: str) -> None:
    store = await Store.open(url, int(shards))
    store.clock_offset_ms = int(offset)
    async with open_services(store) as core:
        sending: Any = DeadlySending(core.sending, when)
        read = partial(order_of, options=Options())
        sender = SeriesSender(core.client, store, sending, core.directory, read)
        await sender.open()
        await sender.worker().run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
