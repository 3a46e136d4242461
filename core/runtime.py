"""The courier runtime, once for all channels: a claimed parcel in, outcomes in the history out.

    claim ─▶ which entries are open ─▶ who can be served now ─▶ attempts, side by side ─▶ settle
                                      │ the rest waits         │ each quarter second: extend with what is known

A courier sees messages and returns outcomes (`core.port`). Retrying, waits, leases, cancelling, stopping and the
history are here. Everybody who can be served is served first (D-23); a wait holds what it was said about and nobody
else.

Before: `lua/claim.lua` gives a parcel. After: `couriers/<channel>.py` attempts; `lua/settle.lua` writes what came of
it.
"""

import logging

from core.channels import Channels, Facts
from core.hands import Hands
from core.manner import Manner
from core.parcel_run import ParcelRun
from core.port import Courier
from core.queue import Claim, Queue, Task
from core.receipts import Receipts
from core.store import Store
from core.worker import Pace, Worker

log = logging.getLogger(__name__)


# Small parcels in hand at once.
_TASKS = 200


class Runtime:
    """One courier process."""

    def __init__(self, store: Store, courier: Courier, manner: Manner | None = None) -> None:
        self.store = store
        self.courier = courier
        self.manner = manner or Manner()
        self.queue = Queue(store)
        self.receipts = Receipts(store)
        self.hands = Hands(max(2, self.manner.side_by_side // courier.batch))
        self.halted = ""
        self._channels = Channels(store)
        self._worker = Worker(store, courier.channel, self._deliver, pace=self._pace(), account=courier.account)

    def _pace(self) -> Pace:
        """Two parcels: the next is at hand when the first one runs out, the others are left to other processes."""
        entries = 2 * self.courier.parcel
        return Pace(self.manner.lease, self.manner.floor, tasks=min(entries, _TASKS), entries=entries)

    async def run(self) -> None:
        """Deliver until `stop()`, or until the account is halted: then `halted` says why, and the tasks stay queued."""
        await self._channels.register(self.courier.channel, Facts(self.courier.parcel))
        await self._worker.run()

    def stop(self) -> None:
        """Finish the attempts in hand, return the rest."""
        self._worker.stop()

    @property
    def stopping(self) -> bool:
        return self._worker.stopping

    def lighten(self, task: Task, entries: int) -> None:
        """A parcel in hand has so many entries less to do."""
        self._worker.lighten(task, entries)

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
        await self._channels.register(self.courier.channel, Facts(self.courier.parcel, halted=detail))

    async def _deliver(self, task: Task, claim: Claim) -> None:
        await ParcelRun(self, task, claim).run()
