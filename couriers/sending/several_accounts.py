"""One courier process with an account for each tenant: a parcel is sent by the account of its tenant, and by no other.

    claim ─▶ the account of the task's tenant ─▶ its parcel executor
                 └─ none, or halted: the parcel waits in the queue, uncounted, until it expires; a second for an
                    account that may be signing in just now, otherwise a minute

Guarantees: a throttle, a learned rate and a halt concern one account; all accounts share one worker, so an idle one
costs nothing. Accounts come and go while the process runs. Beside it `couriers.sending.runtime` has one account for
all.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from core.deliveries.channels import ChannelFacts, Channels
from core.queue import Claim, Queue, Task, Worker
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.uploads import Uploads
from couriers.sending.account_throttle import AccountThrottle
from couriers.sending.content.uploaded_files import UploadedFiles
from couriers.sending.interface import Courier
from couriers.sending.options import CourierOptions
from couriers.sending.parcels.parcel_executor import ParcelExecutor
from couriers.sending.parcels.parcel_services import ParcelServices
from couriers.sending.runtime import parcel_services, register, worker_options

log = logging.getLogger(__name__)

_PARCEL = 100
"""Recipients of a parcel, for the room of the worker."""
_WAITS_MS = 60_000
"""How long a parcel waits in the queue for an account."""
_SIGNS_IN_MS = 10_000
"""How long a missing account is looked for every second: it signs in when a process starts, or a folder appears."""
_SOON_MS = 1000


@dataclass
class _Account:
    services: ParcelServices
    marking: "asyncio.Task[None]" = field(repr=False)
    parcels: set["asyncio.Task[None]"] = field(default_factory=set, repr=False)
    halted: str = ""


class SeveralAccounts:
    """To `run()` and to `stop()`. `on_halt`: reports that the account of a tenant needs an operator, and why."""

    def __init__(
        self,
        store: Store,
        channel: str,
        on_halt: Callable[[str, str], Awaitable[None]],
        options: CourierOptions | None = None,
    ) -> None:
        self._store = store
        self._channel = channel
        self._on_halt = on_halt
        self._options = options or CourierOptions()
        self._queue = Queue(store)
        self._files = UploadedFiles(Uploads(store))
        self._accounts: dict[str, _Account] = {}
        self._missing: dict[str, int] = {}
        worker = worker_options(self._options, _PARCEL)
        self._worker = Worker(store, channel, self._deliver, options=worker, on_throttle=self._signal)

    @property
    def claims(self) -> int:
        """Return how many claims this process has made."""
        return self._worker.claims

    async def add(self, tenant: str, courier: Courier) -> None:
        """Send the messages of a tenant through its courier from now on. Raises StoreError."""
        await register(Channels(self._store), courier, ChannelFacts(courier.parcel))
        throttle = AccountThrottle(self._queue, self._channel, courier.account, lambda: self._worker.stopping)

        async def halt(detail: str) -> None:
            await self._halt(tenant, detail)

        services = parcel_services(self._store, courier, self._options, self._worker, throttle, halt, self._files)
        self._accounts[tenant] = _Account(services, asyncio.create_task(services.read_marks.run()))
        self._missing.pop(tenant, None)

    async def remove(self, tenant: str) -> None:
        """Send them no longer; return when the parcels under way have ended."""
        if account := self._accounts.pop(tenant, None):
            if account.parcels:
                await asyncio.wait(account.parcels)
            await cancel_and_wait(account.marking)
            await account.services.courier.close()

    async def run(self) -> None:
        """Deliver until `stop()`."""
        try:
            await self._worker.run()
        finally:
            for tenant in tuple(self._accounts):
                await self.remove(tenant)
            self._files.close()

    def stop(self) -> None:
        """Finish the attempts under way and return the other entries to the queue."""
        self._worker.stop()
        for account in self._accounts.values():
            account.services.account.interrupt()

    def _signal(self) -> None:
        for account in self._accounts.values():
            account.services.account.signal()

    async def _halt(self, tenant: str, detail: str) -> None:
        """Stop the account of a tenant until it is added anew."""
        account = self._accounts.get(tenant)
        if account and not account.halted:
            account.halted = detail
            account.services.account.until = time.monotonic() + _WAITS_MS / 1000  # for the parcels under way
            await self._on_halt(tenant, detail)

    async def _deliver(self, task: Task, claim: Claim) -> None:
        account = self._accounts.get(task.tenant)
        if account is None or account.halted:
            await self._queue.release(task, due=task.claimed + (_WAITS_MS if account else self._wait_of(task)))
            return
        under_way = asyncio.current_task()
        assert under_way is not None
        account.parcels.add(under_way)
        under_way.add_done_callback(account.parcels.discard)
        await ParcelExecutor(account.services, task, claim).run()

    def _wait_of(self, task: Task) -> int:
        """Return how long a parcel waits for an account that is missing (ms)."""
        since = self._missing.setdefault(task.tenant, task.claimed)
        return _SOON_MS if task.claimed < since + _SIGNS_IN_MS else _WAITS_MS
