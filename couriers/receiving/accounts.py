"""The bots of several tenants in one channel, in one process: each gets the updates of its own account.

    Accounts ─┬─ one lease, one worker of the calls that bots make at once, one that gathers the parts of events
              └─ for each bot: its poll, a request that waits at the provider

Guarantees: an idle bot costs no command of the store. A bot whose token is refused, or that fails in another way,
stops alone. Bots come and go while the process runs.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from core.queue import QueueClient, Worker
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.updates.bot_calls import Make, calls_tube, calls_worker
from couriers.receiving.shared_lease import SharedLease

log = logging.getLogger(__name__)

_GRACE = timedelta(seconds=5)
_CATCHING_UP = 10.0
"""Seconds after which parts of events are gathered even if a bot has not got all that waited for it."""


@dataclass(frozen=True)
class Account:
    """A bot at its provider. `poll`: runs until cancelled. `refused`: what it raises if the token is refused. `make`:
    makes the calls of `core.updates.bot_calls`. `caught_up`: is set when it has got all updates that waited, None if
    that does not matter.
    """

    poll: Callable[[], Awaitable[None]]
    refused: type[Exception]
    make: Make
    close: Callable[[], Awaitable[None]]
    caught_up: asyncio.Event | None = None


@dataclass
class _Running:
    account: Account
    polling: "asyncio.Task[None]" = field(repr=False)


class Accounts:
    """To `run()` and to `stop()`. `gatherer`: makes the worker of the parts of events. `on_fault`: reports that the
    bot of a tenant has stopped, and why.
    """

    def __init__(
        self,
        store: Store,
        client: QueueClient,
        channel: str,
        on_fault: Callable[[str, str], Awaitable[None]],
        gatherer: Callable[[], Worker] | None = None,
    ) -> None:
        self.lease = SharedLease(store, f"all in {channel}")
        self._on_fault = on_fault
        self._gatherer = gatherer
        self._running: dict[str, _Running] = {}
        self._makers: dict[str, Make] = {}
        self._calls = calls_worker(client, calls_tube(channel), self._makers)
        self._stopping = asyncio.Event()

    def add(self, tenant: str, account: Account) -> None:
        """Get the updates of a tenant's bot from now on."""
        self._makers[tenant] = account.make
        self.lease.want()
        polling = asyncio.create_task(self._poll(tenant, account), name=f"updates of {tenant}")
        self._running[tenant] = _Running(account, polling)

    async def remove(self, tenant: str) -> None:
        """Get them no longer."""
        self._makers.pop(tenant, None)
        if running := self._running.pop(tenant, None):
            await cancel_and_wait(running.polling)
            await running.account.close()

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Work until `stop()`."""
        beside = [asyncio.create_task(part) for part in (self.lease.run(), self._gather())]
        working, stopping = asyncio.create_task(self._calls.run()), asyncio.create_task(self._stopping.wait())
        try:
            on_ready()
            done, _ = await asyncio.wait({*beside, working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await cancel_and_wait(*(one.polling for one in self._running.values()))
            self._calls.stop(_GRACE)
            await working
            for ended in done:
                ended.result()
        finally:
            await cancel_and_wait(*beside, working, stopping)
            for tenant in tuple(self._running):
                await self.remove(tenant)

    def stop(self) -> None:
        """End `run`: what is in progress is finished, what is in the queue stays there."""
        self._stopping.set()

    async def _poll(self, tenant: str, account: Account) -> None:
        try:
            await account.poll()
        except account.refused as refusal:
            await self._on_fault(tenant, str(refusal))
        except Exception as fault:  # whatever it is, it stops this bot alone
            log.debug("the bot of %s", tenant, exc_info=fault)
            await self._on_fault(tenant, f"getting its updates failed ({type(fault).__name__})")

    async def _gather(self) -> None:
        """Gather parts while this process gets the updates, and has got those that waited during a restart."""
        if self._gatherer is None:
            await asyncio.Event().wait()
        while self._gatherer:
            await self.lease.acquire()
            await self._catch_up()
            worker = self._gatherer()
            working = asyncio.create_task(worker.run())
            try:
                await self.lease.hold()
                worker.stop(_GRACE)
                await working
            finally:
                await cancel_and_wait(working)

    async def _catch_up(self) -> None:
        waiting = [one.account.caught_up.wait() for one in self._running.values() if one.account.caught_up]
        try:
            async with asyncio.timeout(_CATCHING_UP):
                await asyncio.gather(*waiting)
        except TimeoutError:
            log.warning("a bot has not got all its updates yet; albums of the last second may be divided")
