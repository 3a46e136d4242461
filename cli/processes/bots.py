"""What the process of a bot uses of core, opened with the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bots.services import Services
from cli.processes.linking import open_linking
from cli.processes.rules import sending_rules
from cli.settings.settings import Settings
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.deliveries.tracker import Tracker
from core.directory import Directory
from core.orders import Sending
from core.queue import QueueClient
from core.redis.store import Store


@asynccontextmanager
async def open_bot_services(store: Store, settings: Settings) -> AsyncIterator[Services]:
    """The services of one bot, of the tenant ADA_BOT_TENANT."""
    channels, directory, tracker = Channels(store), Directory(store), Tracker(store)
    deliveries = Deliveries(store, channels)
    try:
        async with open_linking(store, directory, settings) as linking:
            yield Services(
                store=store,
                queue=QueueClient(store),
                directory=directory,
                linking=linking,
                sending=Sending(store, deliveries, directory, sending_rules(settings)),
                deliveries=deliveries,
                channels=channels,
                tracker=tracker,
                tenant=settings.bot_tenant,
                timezone=settings.tenant_timezones.get(settings.bot_tenant, settings.timezone),
            )
    finally:
        await tracker.close()
