"""The courier runtime, once for all channels: claims parcels and writes the outcomes into histories.

    claim ─▶ which entries are open ─▶ who can be served now ─▶ concurrent attempts ─▶ settle
                                      │ the others are postponed │ meanwhile: extend with the outcomes so far

A courier receives messages and returns outcomes (`couriers.sending.interface`). Retries, throttles, leases, cancelling,
stopping and the history are here. All recipients who can be served now are served first (D-23); a throttle applies only
to its scope.

`lua/queue/functions/claim.lua` gives a parcel; `couriers.sending.parcels.parcel_executor` attempts it;
`lua/queue/functions/settle.lua` writes the end.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from core.deliveries.channels import ChannelFacts, Channels
from core.deliveries.choice_store import Choices
from core.deliveries.delivery_reports import DeliveryReports
from core.deliveries.histories.reader import HistoryReader
from core.queue import Claim, Queue, Task, Worker, WorkerOptions
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.uploads import Uploads
from couriers.sending.account_throttle import AccountThrottle
from couriers.sending.attempt_pool import AttemptPool
from couriers.sending.content.shown import display_of
from couriers.sending.content.uploaded_files import UploadedFiles
from couriers.sending.interface import NEVER, Courier
from couriers.sending.options import CourierOptions
from couriers.sending.parcels.parcel_executor import ParcelExecutor
from couriers.sending.parcels.parcel_services import ParcelServices
from couriers.sending.read_marks import ReadMarks

log = logging.getLogger(__name__)

# Concurrent attempts of a courier that sends many messages in one call: a silent one leaves the others most of them.
_LEAST_ATTEMPTS = 4

# Most parcels of one process at a time, however small they are.
_MAX_PARCELS = 200


class Runtime:
    """One courier process. `halted`: why an operator is needed, "" otherwise."""

    def __init__(self, store: Store, courier: Courier, options: CourierOptions | None = None) -> None:
        self.courier = courier
        self.halted = ""
        self._options = options or CourierOptions()
        self._channels = Channels(store)
        queue = Queue(store)
        self._account = AccountThrottle(queue, courier.channel, courier.account, lambda: self._worker.stopping)
        self._worker = Worker(
            store,
            courier.channel,
            self._deliver,
            options=worker_options(self._options, courier.parcel),
            account=courier.account,
            on_throttle=self._account.signal,
        )
        files = UploadedFiles(Uploads(store))
        self._services = parcel_services(store, courier, self._options, self._worker, self._account, self._halt, files)

    async def run(self, on_registered: Callable[[], None] = lambda: None) -> None:
        """Deliver until `stop()`, or until the account is halted: then the tasks stay queued.

        `on_registered` is called when the channel is known, so that deliveries may name it.
        """
        await self._register(ChannelFacts(self.courier.parcel))
        on_registered()
        marking = asyncio.create_task(self._services.read_marks.run(), name=f"read marks of {self.courier.channel}")
        try:
            await self._worker.run()
        finally:
            await cancel_and_wait(marking)
            self._services.files.close()

    def stop(self) -> None:
        """Finish the attempts under way and return the other entries to the queue."""
        self._worker.stop()
        self._account.interrupt()

    @property
    def claims(self) -> int:
        """Return how many claims this process has made."""
        return self._worker.claims

    async def _halt(self, detail: str) -> None:
        """Halt: log an error, register it, and stop. The account cannot send until an operator acts."""
        if self.halted:
            return
        self.halted = detail
        log.error("stopped until you repair it: %s", detail)
        self.stop()
        await self._register(ChannelFacts(self.courier.parcel, halted=detail))

    async def _register(self, facts: ChannelFacts) -> None:
        await register(self._channels, self.courier, facts)

    async def _deliver(self, task: Task, claim: Claim) -> None:
        await ParcelExecutor(self._services, task, claim).run()


def worker_options(options: CourierOptions, parcel: int) -> WorkerOptions:
    """Return options with capacity for two full parcels: the next one is claimed before the first one ends, and the
    others are left to other processes.
    """
    return WorkerOptions(
        lease=options.lease,
        max_sleep=options.max_sleep,
        max_tasks=min(2 * parcel, _MAX_PARCELS),
        max_entries=2 * parcel,
    )


def parcel_services(
    store: Store,
    courier: Courier,
    options: CourierOptions,
    worker: Worker,
    throttle: AccountThrottle,
    halt: Callable[[str], Awaitable[None]],
    files: UploadedFiles,
) -> ParcelServices:
    """Return what the parcels of a courier need in this process."""
    reports = DeliveryReports(store)
    return ParcelServices(
        courier=courier,
        options=options,
        queue=Queue(store),
        reader=HistoryReader(store),
        delivery_reports=reports,
        attempt_pool=AttemptPool(max(min(_LEAST_ATTEMPTS, options.concurrency), options.concurrency // courier.batch)),
        account=throttle,
        is_stopping=lambda: worker.stopping,
        release_capacity=worker.release_capacity,
        halt=halt,
        read_marks=ReadMarks(store, reports, courier),
        choices=Choices(store),
        files=files,
    )


async def register(channels: Channels, courier: Courier, facts: ChannelFacts) -> None:
    """Register the channel of a courier."""
    announces, display = courier.remembers == NEVER, display_of(courier)
    await channels.register(courier.channel, facts, announces=announces, display=display)
