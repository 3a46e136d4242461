"""Writes the outcomes of one claimed parcel: noted at once, written a few times a second, all again at the end. The
primary that has written them may be lost meanwhile, with what no replica has.

Where a repeat could double a message, outcomes are written as soon as they are noted, that of a single entry with the
end of its claim, and attempts are announced. There is one write at a time: it takes along what has come since the last
one. So a killed process leaves little unknown, and a busy one needs few writes (docs/decisions/0159).

Invariant I22: what is known of an attempt is recorded, also if the store failed meanwhile or the lease was lost. Tests:
tests/couriers/sending/test_late_outcomes.py, tests/system/crash/test_frozen_couriers.py.

Called by `couriers.sending.parcel_executor`; calls `lua/queue/functions/extend.lua`, and
`lua/queue/functions/settle.lua` for the last outcomes; after the lease `lua/delivery/functions/record_late.lua`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from core.errors import FunctionFault, StoreError
from core.queue import Settled, Settlement, Task
from couriers.sending.interface import NEVER
from couriers.sending.parcel import Parcel
from couriers.sending.services import ParcelServices

log = logging.getLogger(__name__)

_WRITE_INTERVAL = 0.25
# Outcomes of one function call. While a function runs, the server does nothing else.
_PAGE = 500
# Without new outcomes the parcel is extended this often, to see cancellations and to renew the lease.
_EXTEND_INTERVAL = 1.0
_EXTENSIONS_PER_LEASE = 3
# Seconds until the next try to settle while the store fails.
_SETTLE_PAUSE = 1.0

# An item, and what is done when it is written.
_Announced = tuple[list[Any], "asyncio.Future[None]"]


class OutcomeWriter:
    """One per claim. `lost`: the lease was lost or the store failed, so nothing may be attempted any more. `cancelled`:
    nothing more may be attempted. `skip`: ids of recipients that were cancelled, or have answered, meanwhile.
    """

    def __init__(self, services: ParcelServices, task: Task, parcel: Parcel) -> None:
        self._services = services
        self._queue = services.queue
        self._task = task
        self._parcel = parcel
        self._lease = services.options.lease
        # The outcome of a single entry is written when the claim is settled, which follows its attempt at once.
        self._writes_at_once = services.courier.remembers == NEVER and len(parcel.entries) > 1
        self._items: list[Any] = []
        self._written = 0
        self._announced: list[_Announced] = []
        self._changed = asyncio.Event()
        self._is_finished = False
        self.skip: frozenset[str] = frozenset()
        self.cancelled = False
        self.lost = False

    def note(self, item: list[Any]) -> None:
        """Keep an outcome (`Entry.item`) until the end of this claim is written."""
        self._items.append(item)
        if self._writes_at_once:
            self._changed.set()

    async def announce(self, item: list[Any]) -> None:
        """Return when it is written that an entry is being sent, and with durability `replica` when a replica has it;
        or when `lost`. The caller sends at once: until then no more than a few messages of the process are announced.
        """
        async with self._services.announcing:
            written = asyncio.get_running_loop().create_future()
            self._announced.append((item, written))
            self._changed.set()
            if not self.lost:
                await written

    async def save(self, checkpoint: str) -> None:
        """Write the checkpoint before the first attempt. Raises StoreError."""
        await self._write((), checkpoint)

    async def _write(self, items: Sequence[Any], checkpoint: str = "", *, replicated: bool = False) -> None:
        """Write outcomes now and extend the lease. Raises StoreError."""
        for start in range(0, max(1, len(items)), _PAGE):
            page = items[start : start + _PAGE]
            extension = await self._queue.extend(self._task, self._lease, page, checkpoint, replicated=replicated)
            self.lost = self.lost or not extension.lease_valid
            self.cancelled = self.cancelled or extension.cancelled
            self.skip |= extension.skip

    def give_up(self, fault: StoreError) -> None:
        """Attempt nothing more after a fault of the store. What is known is written as soon as the store works."""
        if not self.lost:
            log.warning("parcel %s: no further attempts: %s", self._task.id, fault)
        self.lost = True

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write meanwhile what is noted and announced, and see cancellations and a lost lease as early."""
        writing = asyncio.create_task(self._write_until_finished())
        try:
            yield
        finally:
            self._is_finished = True
            self._changed.set()
            await asyncio.gather(writing, return_exceptions=True)

    async def _write_until_finished(self) -> None:
        extended = time.monotonic()
        interval = min(_EXTEND_INTERVAL, self._lease.total_seconds() / _EXTENSIONS_PER_LEASE)
        try:
            while not self.lost and not await self._finished_before_next_write():
                is_new = self._announced or len(self._items) > self._written
                if is_new or time.monotonic() - extended > interval:
                    await self._write_or_give_up()
                    extended = time.monotonic()
        finally:
            self.lost |= not self._is_finished
            self._let_go(self._announced)

    async def _finished_before_next_write(self) -> bool:
        """Wait until something is to be written at once, at most a quarter of a second. Returns whether the attempts
        have ended.
        """
        if not self._changed.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_WRITE_INTERVAL):
                    await self._changed.wait()
        self._changed.clear()
        return self._is_finished

    async def _write_or_give_up(self) -> None:
        announced, self._announced = self._announced, []
        try:
            await self._write_noted([item for item, _ in announced], replicated=bool(announced))
        except StoreError as fault:
            self.give_up(fault)
        finally:
            self._let_go(announced)

    def _let_go(self, announced: Sequence[_Announced]) -> None:
        """Let the attempts go on that wait until they are announced."""
        for _, written in announced:
            if not written.done():
                written.set_result(None)

    async def _write_noted(self, more: Sequence[Any] = (), *, replicated: bool = False) -> None:
        """Write the outcomes that were not written before, and `more`. Calls may overlap. Raises StoreError."""
        start, self._written = self._written, len(self._items)
        is_written = False
        try:
            await self._write([*self._items[start:], *more], replicated=replicated)
            is_written = not self.lost
        finally:
            if not is_written:
                self._written = min(self._written, start)

    async def settle(self, end: Settlement, postponed: int) -> None:
        """End this claim with `postponed` entries left. While the store fails, try again until the process stops; then
        raise StoreError.
        """
        while True:
            try:
                return await self._settle(end, postponed)
            except FunctionFault:
                raise
            except StoreError as fault:
                if self._services.is_stopping():
                    log.error("parcel %s: %d outcomes not recorded", self._task.id, len(self._items))
                    raise
                log.warning("parcel %s not settled, next try in %s s: %s", self._task.id, _SETTLE_PAUSE, fault)
            await asyncio.sleep(_SETTLE_PAUSE)

    async def _settle(self, end: Settlement, postponed: int) -> None:
        if len(self._items) - _PAGE > self._written:
            await self._write_noted()
        state = await self._queue.settle(
            self._task,
            outcomes=self._items[-_PAGE:],
            due=end.due,
            checkpoint=end.checkpoint,
            unclear=end.unclear,
            error=end.error,
        )
        if state is Settled.STALE:
            await self._record_late()
        log.debug("parcel %s: %d closed, %d left, %s", self._task.id, len(self._items), postponed, state)

    async def _record_late(self) -> None:
        """Record outcomes as reports: another worker has taken the parcel over, or an earlier call has settled it and
        its reply was lost.
        """
        parcel = self._parcel
        for start in range(0, len(self._items), _PAGE):
            page = self._items[start : start + _PAGE]
            await self._services.delivery_reports.record_late(parcel.history_key, parcel.label, parcel.number, page)
        log.warning("parcel %s: its lease was lost, %d outcomes recorded as reports", self._task.id, len(self._items))
