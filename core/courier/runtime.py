"""The courier runtime, once for all channels: a claimed parcel in, outcomes in the history out.

    claim ─▶ which entries are open ─▶ who can be served now ─▶ attempts, side by side ─▶ settle
                                      │ the rest waits         │ each quarter second: extend with what is known

A courier sees messages and returns outcomes (`core.courier.interface`). Retrying, waits, leases, cancelling, stopping
and the
history are here. Everybody who can be served is served first (D-23); a wait holds what it was said about and nobody
else.

Before: `lua/queue/claim.lua` gives a parcel. After: `couriers/<channel>.py` attempts; `lua/queue/settle.lua` writes
what came of
it.
"""

import logging

from core.courier.attempt_pool import AttemptPool
from core.courier.interface import Courier
from core.courier.options import CourierOptions
from core.courier.parcel_executor import ParcelExecutor
from core.history.channels import ChannelFacts, Channels
from core.history.delivery_reports import DeliveryReports
from core.queue.queue import Claim, Queue, Task
from core.queue.worker import Worker, WorkerOptions
from core.redis.store import Store

log = logging.getLogger(__name__)


# Small parcels in hand at once.
_TASKS = 200


class Runtime:
    """One courier process."""

    def __init__(self, store: Store, courier: Courier, options: CourierOptions | None = None) -> None:
        self.store = store
        self.courier = courier
        self.options = options or CourierOptions()
        self.queue = Queue(store)
        self.delivery_reports = DeliveryReports(store)
        self.attempt_pool = AttemptPool(max(2, self.options.side_by_side // courier.batch))
        self.halted = ""
        self._channels = Channels(store)
        self._worker = Worker(store, courier.channel, self._deliver, pace=self._pace(), account=courier.account)

    def _pace(self) -> WorkerOptions:
        """Two parcels: the next is at hand when the first one runs out, the others are left to other processes."""
        entries = 2 * self.courier.parcel
        return WorkerOptions(self.options.lease, self.options.floor, tasks=min(entries, _TASKS), entries=entries)

    async def run(self) -> None:
        """Deliver until `stop()`, or until the account is halted: then `halted` says why, and the tasks stay queued."""
        await self._channels.register(self.courier.channel, ChannelFacts(self.courier.parcel))
        await self._worker.run()

    def stop(self) -> None:
        """Finish the attempts in hand, return the rest."""
        self._worker.stop()

    @property
    def stopping(self) -> bool:
        return self._worker.stopping

    def release_capacity(self, task: Task, entries: int) -> None:
        """A parcel in hand has so many entries less to do."""
        self._worker.release_capacity(task, entries)

    @property
    def claims(self) -> int:
        return self._worker.claims

    async def halt(self, detail: str) -> None:
        """The account cannot send until a person mends it: alarm, and take nothing more."""
        if self.halted:
            return
        self.halted = detail
        log.error("%s stopped, an operator is needed: %s", self.courier.channel, detail)
        self.stop()
        await self._channels.register(self.courier.channel, ChannelFacts(self.courier.parcel, halted=detail))

    async def _deliver(self, task: Task, claim: Claim) -> None:
        await ParcelExecutor(self, task, claim).run()
