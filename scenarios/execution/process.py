"""One process of the scenarios: its workers, the bots that it serves, the wake-ups, the purge of old runs.

All bots share the workers: a task is handled by the bot of its tenant, and by no other. The tubes serve tenants by
turns (docs/decisions/0015), so a busy one delays the others by its turn only.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from core.errors import StoreError
from core.queue import Attempt, Result, Retry, Suspend, Worker
from core.redis.cancel_and_wait import cancel_and_wait
from core.services import Services
from core.updates import events
from couriers.inbound import bot_calls_by_channel
from scenarios.actions import installed_actions
from scenarios.context import ScenarioServices
from scenarios.execution.active_bot import ActiveBot, watch
from scenarios.execution.driver import PATIENCE
from scenarios.execution.parking import DeliveryEnds, Parking
from scenarios.execution.runs import Runs
from scenarios.execution.schedules import schedules_tube
from scenarios.execution.step_executor import CONCURRENCY, slow_tubes
from scenarios.execution.tenant_bot import TenantBot
from scenarios.execution.versions import Versions
from scenarios.schema import ActionType
from scenarios.sending.following import CONCURRENCY as STATUSES_AT_ONCE
from scenarios.sending.following import TUBE as STATUSES
from scenarios.sending.following import statuses_tube

log = logging.getLogger(__name__)

_MAINTAIN_EVERY = 3600.0
_MOMENTS = 10
"""Moments of schedules that a process handles at once."""

Handle = Callable[[TenantBot, Attempt], Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """`lease`: after the death of a process its people wait so long. `concurrency`: events that are handled at once.
    `patience`: seconds that a run waits for a delivery in place. `adopt_every`: seconds between two searches for runs
    that other processes have parked. `grace`: what is in progress at a stop has so long to be finished. `secrets`:
    those of the process, by the names of their variables. `is_stepped`: a test steps the
    workers and moves the clock, so nothing waits for what others may do meanwhile.
    """

    lease: timedelta = timedelta(seconds=5)
    concurrency: int = 200
    patience: float = PATIENCE
    adopt_every: float = 5.0
    grace: timedelta = timedelta(seconds=5)
    secrets: Mapping[str, str] = field(default_factory=dict)
    is_stepped: bool = False


class Process:
    """To `open()`, to `run()` and to `stop()`; bots come and go with `add` and `remove`. Any number of processes may
    run beside each other. `types`: the action types that are installed.
    """

    def __init__(
        self,
        core: Services,
        types: Mapping[str, ActionType] | None = None,
        options: ProcessOptions = ProcessOptions(),
    ) -> None:
        self._core = core
        self._types = installed_actions().types if types is None else types
        self._options = options
        self._bots: dict[str, TenantBot] = {}
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._ends = DeliveryEnds(core.store)
        self._parking = Parking(core.store, core.client, self._ends, options.adopt_every)
        self._stopping = asyncio.Event()

    async def open(self) -> None:
        """Create the tubes. Raises StoreError."""
        tubes = (events.scenarios_tube(), schedules_tube(), statuses_tube(), *slow_tubes(self._types))
        await asyncio.gather(*(self._core.client.tubes.create(tube) for tube in tubes))
        for calls in bot_calls_by_channel(self._core.client, "").values():
            await calls.open()

    async def add(
        self,
        services: ScenarioServices,
        active: ActiveBot,
        types: Mapping[str, ActionType] | None = None,
        beside: ActiveBot | None = None,
    ) -> None:
        """Serve a bot from now on, the only one of its tenant. `types`: those that it can use. `beside`: the dialog of
        teachers, for a bot other than itself. Raises StoreError.
        """
        types, options = self._types if types is None else types, self._options
        shared = self._ends, self._parking, options.secrets, options.patience
        bot = TenantBot(services, active, types, *shared, beside, is_stepped=options.is_stepped)
        await bot.open()
        self._bots[bot.tenant] = bot
        self._keeping[bot.tenant] = asyncio.create_task(_keep(bot), name=f"bot of {bot.tenant}")

    async def remove(self, tenant: str) -> None:
        """Serve the bot of a tenant no longer; what is in progress is finished, the rest waits for it to come back.
        Raises StoreError.
        """
        bot = self._bots.pop(tenant, None)
        if keeping := self._keeping.pop(tenant, None):
            await cancel_and_wait(keeping)
        if bot:
            await bot.last_good.forget()

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Work until `stop()`; what is in progress then is finished, what is in the queue stays there."""
        ends = asyncio.create_task(self._ends.run(), name="ends of deliveries")
        ready = asyncio.create_task(self._ends.ready.wait())
        await asyncio.wait({ends, ready}, return_when=asyncio.FIRST_COMPLETED)
        parts = (self._parking.run(), watch(self._files), self._maintain())
        beside = [asyncio.create_task(part) for part in parts]
        workers = self.workers()
        working = [asyncio.create_task(worker.run()) for worker in workers]
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            on_ready()
            done, _ = await asyncio.wait({ends, stopping, *beside, *working}, return_when=asyncio.FIRST_COMPLETED)
            for worker in workers:
                worker.stop(self._options.grace)
            await asyncio.gather(*working)
            for ended in done:
                ended.result()
        finally:
            await cancel_and_wait(ready, stopping, ends, *beside, *working, *self._keeping.values())

    def stop(self) -> None:
        self._stopping.set()

    async def search_dates(self, tenant: str) -> None:
        """Search for the dates of the people of a bot anew: one is about to change. Raises StoreError."""
        await self._bots[tenant].search_dates()

    async def wake_ended(self) -> bool:
        """Wake the runs whose deliveries have ended; return whether there are any. `run` does it all the time."""
        await self._ends.check_watched()
        return await self._parking.wake_ended()

    def _files(self) -> Sequence[ActiveBot]:
        return [bot.active for bot in self._bots.values()]

    def workers(self) -> Sequence[Worker]:
        """Return a worker of each tube. `run` runs them; a test steps them, and calls `wake_ended` in between."""
        slow = [self._worker(tube.name, TenantBot.handle_slow_step, CONCURRENCY) for tube in slow_tubes(self._types)]
        return [
            self._worker(events.TUBE, TenantBot.handle_event, self._options.concurrency),
            self._worker(STATUSES, TenantBot.handle_status, STATUSES_AT_ONCE),
            self._worker(schedules_tube().name, TenantBot.handle_moment, _MOMENTS),
            *slow,
        ]

    def _worker(self, tube: str, handle: Handle, concurrency: int) -> Worker:
        """Return a worker that gives each task to the bot of its tenant."""

        async def handle_task(attempt: Attempt) -> Result:
            bot = self._bots.get(attempt.task.tenant)
            return await handle(bot, attempt) if bot else without_bot(attempt)

        return self._core.client.worker(tube, handle_task, concurrency, lease=self._options.lease)

    async def _maintain(self) -> None:
        """Purge old runs, and keep the versions of the bots, every hour."""
        runs = Runs(self._core.store, Versions(self._core.store))
        while True:
            await asyncio.sleep(_MAINTAIN_EVERY)
            try:
                await runs.drop_ended()
                for bot in tuple(self._bots.values()):
                    await bot.last_good.store()
            except StoreError as fault:
                log.warning("old runs not dropped: %s", fault)


async def _keep(bot: TenantBot) -> None:
    """Follow the changes of a bot. A fault of it is logged, and ends no other bot."""
    try:
        await bot.keep()
    except Exception:
        log.exception("changes of the bot of %s are not followed any more", bot.tenant)


_SOON = 6
"""Attempts that follow soon: another process may have seen the folder of a new bot before this one."""
_LATER = timedelta(minutes=1)
_MUCH_LATER = timedelta(minutes=10)


def without_bot(attempt: Attempt) -> Result:
    """Return what becomes of a task whose tenant has no bot here: it was removed, or this process has not seen it yet.

    An event waits until it expires; what was begun and what is scheduled waits for the bot to come back.
    """
    attempts, checkpoint = attempt.task.attempts, attempt.checkpoint
    why = f"no bot of the tenant {attempt.task.tenant} is served"
    if attempts <= _SOON:
        return Retry(timedelta(seconds=2**attempts / 2), checkpoint=checkpoint, error=why)
    if attempt.task.expires:
        return Retry(_LATER, checkpoint=checkpoint, error=why)
    return Suspend(_MUCH_LATER, checkpoint=checkpoint)
