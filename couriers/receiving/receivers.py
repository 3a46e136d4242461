"""The bots of one channel in one process: each gets the updates of its own account.

    Receivers ─┬─ one lease, the parts that answer or make calls, one that gathers the parts of events
               └─ for each bot: its poll, a request that waits at the provider

Guarantees: an idle bot costs no command of the store. A bot whose token is refused, or that fails in another way,
stops alone, if `on_fault` does not raise. Bots come and go while the process runs.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from core.queue import Worker
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.threads.files import Fetch
from core.updates.bot_calls import Make
from core.updates.ingress import Ingress
from couriers.receiving.lease import PollerLease
from couriers.receiving.poller import Poller
from couriers.receiving.receiver import Receiver

log = logging.getLogger(__name__)

_GRACE = timedelta(seconds=5)
_CATCHING_UP = 10.0
"""Seconds after which parts of events are gathered even if a bot has not got all that waited for it."""


class AccountRefused(Exception):
    """The provider refuses the account; only an operator can help. The text is the remedy."""


class Part(Protocol):
    """Something that runs in the same process, such as a worker."""

    async def run(self) -> None: ...

    def stop(self, grace: timedelta | None = None) -> None: ...


@dataclass
class _Running:
    receiver: Receiver
    tasks: Sequence["asyncio.Task[None]"] = field(repr=False)


class Receivers:
    """To `run()` and to `stop()`. `on_fault`: reports that the bot of a tenant has stopped, and why; what it raises
    ends the process. `lease`: the name of the one for all bots, "" if there is only one bot.
    """

    def __init__(
        self,
        store: Store,
        on_fault: Callable[[str, Exception], Awaitable[None]],
        lease: str = "",
    ) -> None:
        self._store = store
        self._lease = PollerLease(store, lease)
        self._on_fault = on_fault
        self._running: dict[str, _Running] = {}
        self._makers: dict[str, Make] = {}
        self._fetchers: dict[str, Fetch] = {}
        self._stopping = asyncio.Event()
        self._fault: Exception | None = None

    @property
    def makers(self) -> Mapping[str, Make]:
        """Return what makes the calls of each tenant's bot. It changes as bots come and go."""
        return self._makers

    @property
    def fetchers(self) -> Mapping[str, Fetch]:
        """Return what fetches the files of each tenant's bot. It changes as bots come and go."""
        return self._fetchers

    def add(self, tenant: str, receiver: Receiver, ingress: Ingress) -> None:
        """Get the updates of a tenant's bot from now on."""
        if receiver.make:
            self._makers[tenant] = receiver.make
        if receiver.fetch:
            self._fetchers[tenant] = receiver.fetch
        parts = [receiver.keep_subscription()] if receiver.keep_subscription else []
        if receiver.source:
            position, id_of = receiver.keeps_position, receiver.id_of
            poller = Poller(self._store, receiver.source, ingress, self._lease, keeps_position=position, id_of=id_of)
            parts.append(poller.run())
        tasks = [asyncio.create_task(self._keep(tenant, receiver, part), name=f"updates of {tenant}") for part in parts]
        self._running[tenant] = _Running(receiver, tasks)

    async def remove(self, tenant: str) -> None:
        """Get them no longer."""
        self._makers.pop(tenant, None)
        self._fetchers.pop(tenant, None)
        if running := self._running.pop(tenant, None):
            await cancel_and_wait(*running.tasks)
            await running.receiver.close()

    async def run(
        self, parts: Sequence[Part], on_ready: Callable[[], None], gatherer: Callable[[], Worker] | None = None
    ) -> None:
        """Work until `stop()`, with the parts beside. `gatherer`: makes the worker of the parts of events. Raises what
        `on_fault` and the parts raise.
        """
        working = [asyncio.create_task(part.run()) for part in parts]
        others = [self._gather(gatherer)] if gatherer else []
        beside = [asyncio.create_task(one) for one in (self._lease.run(), self._stopping.wait(), *others)]
        try:
            on_ready()
            done, _ = await asyncio.wait({*beside, *working}, return_when=asyncio.FIRST_COMPLETED)
            await cancel_and_wait(*(task for one in self._running.values() for task in one.tasks), *beside)
            for part in parts:
                part.stop(_GRACE)
            await asyncio.gather(*working)
            for ended in done:
                ended.result()
            if self._fault:
                raise self._fault
        finally:
            await cancel_and_wait(*beside, *working)
            await self.close()

    def stop(self) -> None:
        """End `run`: what is in progress is finished, what is in the queue stays there."""
        self._stopping.set()

    async def close(self) -> None:
        """Close what the bots have opened."""
        for tenant in tuple(self._running):
            await self.remove(tenant)

    async def _keep(self, tenant: str, receiver: Receiver, part: Coroutine[Any, Any, None]) -> None:
        try:
            try:
                await part
            except receiver.refused as refusal:
                await self._on_fault(tenant, AccountRefused(str(refusal)))
            except Exception as fault:  # whatever it is, it stops this bot alone
                log.debug("the bot of %s", tenant, exc_info=fault)
                await self._on_fault(tenant, fault)
        except Exception as fault:  # noqa: BLE001 - `run` raises it
            self._fault = fault
            self.stop()

    async def _gather(self, gatherer: Callable[[], Worker]) -> None:
        """Gather parts while this process gets the updates, and has got those that waited during a restart."""
        while True:
            await self._lease.acquire()
            await self._catch_up()
            worker = gatherer()
            working = asyncio.create_task(worker.run())
            try:
                await self._lease.wait_until_lost()
                for event in self._caught_up():
                    event.clear()
                worker.stop(_GRACE)
                await working
            finally:
                await cancel_and_wait(working)

    async def _catch_up(self) -> None:
        try:
            async with asyncio.timeout(_CATCHING_UP):
                await asyncio.gather(*(event.wait() for event in self._caught_up()))
        except TimeoutError:
            log.warning("a bot has not got all its updates yet; albums of the last second may be divided")

    def _caught_up(self) -> Sequence[asyncio.Event]:
        return [one.receiver.caught_up for one in self._running.values() if one.receiver.caught_up]
