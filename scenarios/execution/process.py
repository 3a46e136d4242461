"""One process of the scenarios: its workers, the bots that it serves, the wake-ups, the purge of old runs.

All bots share the workers: a task is handled by the bot of its tenant, and by no other. The tubes serve tenants by
turns (docs/decisions/0015), so a busy one delays the others by its turn only. The bots share besides only the reader of
the ends of deliveries and the parked runs. While nothing happens a bot costs nothing: it has no worker, no timer and no
connection of its own.
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
from core.updates.events import Events
from couriers.inbound import bot_calls_by_channel
from scenarios.actions import installed_actions
from scenarios.context import ScenarioServices
from scenarios.execution.active_bot import ActiveBot, watch
from scenarios.execution.answers import QuestionAnswers
from scenarios.execution.driver import PATIENCE, Driver
from scenarios.execution.handlers import Handlers
from scenarios.execution.menus import Menus
from scenarios.execution.parking import DeliveryEnds, Parking
from scenarios.execution.runs import Runs
from scenarios.execution.schedules import Schedules, schedules_tube
from scenarios.execution.step_executor import CONCURRENCY, SlowSteps, StepExecutor, slow_tubes
from scenarios.execution.versions import LastGood, Versions
from scenarios.schema import ActionType
from scenarios.sending.following import CONCURRENCY as STATUSES_AT_ONCE
from scenarios.sending.following import TUBE as STATUSES
from scenarios.sending.following import FollowedDeliveries, statuses_tube
from scenarios.stores.people import People
from scenarios.stores.variables import Variables

log = logging.getLogger(__name__)


class TenantBot:
    """`active`: its files. `beside`: the dialog of teachers, for a bot other than itself. `types`: the action types by
    name. `secrets`: those that no error may show, by the names of their variables. `patience`, `is_stepped`: see
    `ProcessOptions`.
    """

    def __init__(
        self,
        services: ScenarioServices,
        active: ActiveBot,
        types: Mapping[str, ActionType],
        ends: DeliveryEnds,
        parking: Parking,
        secrets: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
        beside: ActiveBot | None = None,
        *,
        is_stepped: bool = False,
    ) -> None:
        store, client, tenant = services.core.store, services.core.client, services.tenant
        self.tenant = tenant
        self.active = active
        versions = Versions(store)
        self.last_good = LastGood(store, versions, tenant, active, beside)
        runs = Runs(store, versions, tenant)
        executor = StepExecutor(services, types, active.folder, secrets)
        self._slow = SlowSteps(client, runs, executor, parking)
        driver = Driver(runs, executor, services.core.deliveries, ends, parking, self._slow, patience)
        self._handlers = Handlers(
            active,
            People(store, tenant),
            Variables(store, tenant),
            versions,
            runs,
            driver,
            QuestionAnswers(store, tenant, runs, executor, parking),
            bot_calls_by_channel(client, tenant),
            tenant,
            store.shards,
            services.core.directory.users,
            Events(client, tenant),
            beside,
        )
        self._followed = FollowedDeliveries(services.core, tenant, services.timezone, is_stepped=is_stepped)
        self._schedules = Schedules(services, active, is_stepped=is_stepped)
        self._menus = Menus(services.telegram, store, active, beside) if services.telegram else None

    async def open(self) -> None:
        """Put the version in force, and arm its schedules. Raises StoreError."""
        await self.last_good.restore()
        await self._schedules.arm_all()

    async def keep(self) -> None:
        """Follow the changes of the files, until cancelled: the stored version, the schedules, the menus."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.last_good.keep(), name=f"version of {self.tenant}")
            group.create_task(self._schedules.keep(), name=f"schedules of {self.tenant}")
            if self._menus:
                group.create_task(self._menus.keep(), name=f"menus of {self.tenant}")

    async def search_dates(self) -> None:
        """Search for the dates of people anew: one is about to change. Raises StoreError."""
        await self._schedules.search_dates()

    async def handle_event(self, attempt: Attempt) -> Result:
        return await self._handlers.handle_event(attempt)

    async def handle_moment(self, attempt: Attempt) -> Result:
        return await self._schedules.handle(attempt)

    async def handle_status(self, attempt: Attempt) -> Result:
        return await self._followed.handle(attempt)

    async def handle_slow_step(self, attempt: Attempt) -> Result:
        return await self._slow.handle(attempt)


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
