"""What became of the entries of one parcel: noted at once, written while others are attempted, settled at the end.

Before: `core.courier.parcel_executor` notes outcomes. After: `lua/queue/extend.lua` writes them,
`lua/queue/settle.lua` the last of them.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from core.errors import StoreError
from core.queue.queue import Queue, Task

log = logging.getLogger(__name__)

_WRITE_EVERY = 0.25
# Outcomes of one script: while the server runs it, it serves nobody else.
_PAGE = 500
# Without news a cancellation is heard of this often; and a lease is renewed so many times before it would end.
_ASK_EVERY = 1.0
_RENEWALS = 3


class OutcomeWriter:
    """Of one claim. `lost`: the parcel is another's by now, nothing may be attempted or written; `cancelled`: nothing
    more is to be attempted; `skip`: recipients who were cancelled meanwhile.
    """

    def __init__(self, queue: Queue, task: Task, lease: timedelta) -> None:
        self._queue = queue
        self._task = task
        self._lease = lease
        self._items: list[Any] = []
        self._over = asyncio.Event()
        self.skip: frozenset[str] = frozenset()
        self.cancelled = False
        self.lost = False

    def note(self, item: list[Any]) -> None:
        """An outcome (`Entry.item`), for the next time that something is written."""
        self._items.append(item)

    async def write(self, items: Sequence[Any]) -> None:
        """At once. Raises StoreError."""
        for start in range(0, max(1, len(items)), _PAGE):
            answer = await self._queue.extend(self._task, self._lease, items[start : start + _PAGE])
            self.lost = self.lost or not answer.lease_valid
            self.cancelled = self.cancelled or answer.cancelled
            self.skip = answer.skip

    def give_up(self, fault: StoreError) -> None:
        """Without the store nothing more is attempted: the lease runs out, and the next holder asks the history. What
        was sent and is not written goes by the same rules as after a crash.
        """
        self.lost = True
        log.warning("parcel %s left to its lease: %s", self._task.id, fault)

    @asynccontextmanager
    async def being_written(self) -> AsyncIterator[None]:
        """Within it, outcomes reach the history a few times a second; the answers tell of cancellations and of a lost
        lease.
        """
        writing = asyncio.create_task(self._keep_writing())
        try:
            yield
        finally:
            self._over.set()
            await asyncio.gather(writing, return_exceptions=True)

    async def _keep_writing(self) -> None:
        asked, ask_every = time.monotonic(), min(_ASK_EVERY, self._lease.total_seconds() / _RENEWALS)
        while not self.lost and not await self._over_within(_WRITE_EVERY):
            if self._items or time.monotonic() - asked > ask_every:
                await self._write_or_give_up()
                asked = time.monotonic()

    async def _over_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._over.wait()
        except TimeoutError:
            return False

    async def _write_or_give_up(self) -> None:
        items, self._items = self._items, []
        try:
            await self.write(items)
        except StoreError as fault:
            self.give_up(fault)

    async def settle(self, *, due: int, left: int, checkpoint: str, unclear: Sequence[Any]) -> None:
        """The end of this claim with so many entries `left`, unless it was lost. Raises StoreError."""
        if not self.lost and len(self._items) > _PAGE:
            first, self._items = self._items[:-_PAGE], self._items[-_PAGE:]
            await self.write(first)
        if self.lost:
            return
        items = self._items
        ended = await self._queue.settle(self._task, outcomes=items, due=due, checkpoint=checkpoint, unclear=unclear)
        log.info("parcel %s: %d closed, %d left, %s", self._task.id, len(items), left, ended)
