"""The bot of one tenant in a process of the scenarios: what handles its events, its schedules and its slow steps.

Guarantee: it shares with the bots of other tenants only the reader of the ends of deliveries and the parked runs. While
nothing happens it costs nothing: it has no worker, no timer and no connection of its own.
"""

import asyncio
import logging
from collections.abc import Mapping

from core.queue import Attempt, Result
from core.updates.events import Events
from couriers.inbound import bot_calls_by_channel
from scenarios.context import ScenarioServices
from scenarios.execution.active_bot import ActiveBot
from scenarios.execution.answers import QuestionAnswers
from scenarios.execution.driver import PATIENCE, Driver
from scenarios.execution.handlers import Handlers
from scenarios.execution.menus import Menus
from scenarios.execution.parking import DeliveryEnds, Parking
from scenarios.execution.runs import Runs
from scenarios.execution.schedules import Schedules
from scenarios.execution.step_executor import SlowSteps, StepExecutor
from scenarios.execution.versions import LastGood, Versions
from scenarios.schema import ActionType
from scenarios.sending.following import FollowedDeliveries
from scenarios.stores.people import People
from scenarios.stores.variables import Variables

log = logging.getLogger(__name__)


class TenantBot:
    """`active`: its files. `beside`: the dialog of teachers, for a bot other than itself. `types`: the action types by
    name. `secrets`: those that no error may show, by the names of their variables. `patience`, `is_stepped`: see
    `scenarios.execution.process.ProcessOptions`.
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
