"""Writes the outcomes of one claimed parcel: noted at once, written a few times a second, settled at the end.

Called by `core.courier.parcel_executor`; calls `lua/queue/extend.lua`, and `lua/queue/settle.lua` for the last
outcomes.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from core.errors import StoreError
from core.queue import Queue, Task

log = logging.getLogger(__name__)

_WRITE_INTERVAL = 0.25
# Outcomes of one script call. While a script runs, the server does nothing else.
_PAGE = 500
# Without new outcomes the parcel is extended this often, to see cancellations and to renew the lease.
_EXTEND_INTERVAL = 1.0
_EXTENSIONS_PER_LEASE = 3


class OutcomeWriter:
    """One per claim. `lost`: the lease was lost, so nothing may be attempted or written any more. `cancelled`: nothing
    more may be attempted. `skip`: ids of recipients that were cancelled meanwhile.
    """

    def __init__(self, queue: Queue, task: Task, lease: timedelta) -> None:
        self._queue = queue
        self._task = task
        self._lease = lease
        self._items: list[Any] = []
        self._finished = asyncio.Event()
        self.skip: frozenset[str] = frozenset()
        self.cancelled = False
        self.lost = False

    def note(self, item: list[Any]) -> None:
        """Keep an outcome (`Entry.item`) for the next write."""
        self._items.append(item)

    async def write(self, items: Sequence[Any]) -> None:
        """Write outcomes now and extend the lease. Raises StoreError."""
        for start in range(0, max(1, len(items)), _PAGE):
            extension = await self._queue.extend(self._task, self._lease, items[start : start + _PAGE])
            self.lost = self.lost or not extension.lease_valid
            self.cancelled = self.cancelled or extension.cancelled
            self.skip = extension.skip

    def give_up(self, fault: StoreError) -> None:
        """Stop after a fault of the store. The lease ends, and the next claim reads the history. Messages that were
        sent without a written outcome are then treated as after a crash.
        """
        self.lost = True
        log.warning("parcel %s left until its lease ends: %s", self._task.id, fault)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write noted outcomes a few times a second, and see cancellations and a lost lease as early."""
        periodic = asyncio.create_task(self._write_periodically())
        try:
            yield
        finally:
            self._finished.set()
            await asyncio.gather(periodic, return_exceptions=True)

    async def _write_periodically(self) -> None:
        extended = time.monotonic()
        interval = min(_EXTEND_INTERVAL, self._lease.total_seconds() / _EXTENSIONS_PER_LEASE)
        while not self.lost and not await self._finished_within(_WRITE_INTERVAL):
            if self._items or time.monotonic() - extended > interval:
                await self._write_or_give_up()
                extended = time.monotonic()

    async def _finished_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._finished.wait()
        except TimeoutError:
            return False

    async def _write_or_give_up(self) -> None:
        items, self._items = self._items, []
        try:
            await self.write(items)
        except StoreError as fault:
            self.give_up(fault)

    async def settle(self, *, due: int, postponed: int, checkpoint: str, unclear: Sequence[Any]) -> None:
        """End this claim with `postponed` entries left, unless the lease was lost. Raises StoreError."""
        if not self.lost and len(self._items) > _PAGE:
            earlier, self._items = self._items[:-_PAGE], self._items[-_PAGE:]
            await self.write(earlier)
        if self.lost:
            return
        state = await self._queue.settle(
            self._task, outcomes=self._items, due=due, checkpoint=checkpoint, unclear=unclear
        )
        log.info("parcel %s: %d closed, %d left, %s", self._task.id, len(self._items), postponed, state)
