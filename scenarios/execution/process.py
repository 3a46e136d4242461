"""One process of the scenarios: its workers, the wake-ups, the reload of the bot's files, the purge of old runs."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from core.errors import StoreError
from core.queue import Worker
from core.redis.cancel_and_wait import cancel_and_wait
from core.updates import events
from providers.bot_calls import bot_calls_by_channel
from scenarios.actions import installed_actions
from scenarios.check.reloading import ActiveBot
from scenarios.context import ScenarioServices
from scenarios.execution.answers import Answers
from scenarios.execution.driver import PATIENCE, Driver
from scenarios.execution.handlers import Handlers
from scenarios.execution.last_good import LastGood
from scenarios.execution.menus import Menus
from scenarios.execution.runs import Runs
from scenarios.execution.schedules import Schedules
from scenarios.execution.step_executor import StepExecutor
from scenarios.execution.versions import Versions
from scenarios.execution.waiting.delivery_ends import DeliveryEnds
from scenarios.execution.waiting.parking import Parking
from scenarios.execution.waiting.slow_steps import SlowSteps
from scenarios.schema import ActionType
from scenarios.stores.people import People
from scenarios.stores.variables import Variables

log = logging.getLogger(__name__)

_MAINTAIN_EVERY = 3600.0
_GRACE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """`lease`: after the death of a process its people wait so long. `concurrency`: events that are handled at once.
    `patience`: seconds that a run waits for a delivery in place. `adopt_every`: seconds between two searches for runs
    that other processes have parked. `secrets`: those of the process, by the names of their variables.
    """

    lease: timedelta = timedelta(seconds=5)
    concurrency: int = 200
    patience: float = PATIENCE
    adopt_every: float = 5.0
    secrets: Mapping[str, str] = field(default_factory=dict)


class Process:
    """To `run()` and to `stop()`. Any number of processes may run beside each other. `types`: the action types."""

    def __init__(
        self,
        services: ScenarioServices,
        bot: ActiveBot,
        types: Mapping[str, ActionType] | None = None,
        options: ProcessOptions = ProcessOptions(),
    ) -> None:
        types = installed_actions().types if types is None else types
        store, tenant = services.core.store, services.tenant
        self._services = services
        self._bot = bot
        self._options = options
        self._versions = Versions(store)
        self._last_good = LastGood(store, self._versions, tenant, bot)
        self._ends = DeliveryEnds(store)
        self._runs = Runs(store, self._versions, tenant)
        executor = StepExecutor(services, types, bot.folder, options.secrets)
        self._parking = Parking(store, services.core.client, self._runs, self._ends, options.adopt_every)
        self._slow = SlowSteps(services.core.client, self._runs, executor, self._parking, types)
        driver = Driver(
            self._runs, executor, services.core.deliveries, self._ends, self._parking, self._slow, options.patience
        )
        answers = Answers(store, tenant, self._runs, executor, self._parking)
        people, variables = People(store, tenant), Variables(store, tenant)
        self._bot_calls = bot_calls_by_channel(services.core.client, tenant)
        self._handlers = Handlers(
            bot, people, variables, self._versions, self._runs, driver, answers, self._bot_calls, tenant, store.shards
        )
        self._schedules = Schedules(services, bot)
        self._stopping = asyncio.Event()

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Work until `stop()`; what is in progress then is finished, what is in the queue stays there."""
        await self._open()
        ends = asyncio.create_task(self._ends.run(), name="ends of deliveries")
        ready = asyncio.create_task(self._ends.ready.wait())
        await asyncio.wait({ends, ready}, return_when=asyncio.FIRST_COMPLETED)
        parts = (
            *(self._parking.run(), self._bot.watch(), self._last_good.keep()),
            *(self._maintain(), self._keep_menus(), self._schedules.keep()),
        )
        beside = [asyncio.create_task(part) for part in parts]
        workers = self._workers()
        working = [asyncio.create_task(worker.run()) for worker in workers]
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            on_ready()
            done, _ = await asyncio.wait({ends, stopping, *beside, *working}, return_when=asyncio.FIRST_COMPLETED)
            for worker in workers:
                worker.stop(_GRACE)
            await asyncio.gather(*working)
            for ended in done:
                ended.result()
        finally:
            await cancel_and_wait(ready, stopping, ends, *beside, *working)

    def stop(self) -> None:
        self._stopping.set()

    async def _open(self) -> None:
        await events.Events(self._services.core.client, self._services.tenant).open()
        for calls in self._bot_calls.values():
            await calls.open()
        await self._slow.open()
        await self._last_good.restore()
        await self._schedules.open()

    def _workers(self) -> Sequence[Worker]:
        queue, options = self._services.core.client, self._options
        handle = self._handlers.handle_event
        return [
            queue.worker(events.TUBE, handle, options.concurrency, lease=options.lease),
            self._schedules.worker(options.lease),
            *self._slow.workers(options.lease),
        ]

    async def _keep_menus(self) -> None:
        """Keep the bot's menus of commands in Telegram, if it is there."""
        if self._services.telegram is None:
            await asyncio.Event().wait()
        else:
            await Menus(self._services.telegram, self._services.core.store, self._bot).keep()

    async def _maintain(self) -> None:
        """Purge old runs, and keep the version of the bot, every hour."""
        while True:
            await asyncio.sleep(_MAINTAIN_EVERY)
            try:
                await self._runs.drop_ended()
                await self._last_good.store()
            except StoreError as fault:
                log.warning("old runs not dropped: %s", fault)
