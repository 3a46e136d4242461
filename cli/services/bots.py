"""Opens the services of core that the process of a bot uses, by the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bots.services import BotServices
from cli.services.linking import open_linking
from cli.services.sending_policy import sending_policy_of
from cli.settings.settings import Settings
from core.redis.store import Store
from core.services import open_services


@asynccontextmanager
async def open_bot_services(store: Store, settings: Settings) -> AsyncIterator[BotServices]:
    """Open the services of one bot, of the tenant ADA_BOT_TENANT."""
    timezone = settings.tenant_timezones.get(settings.bot_tenant, settings.timezone)
    async with (
        open_services(store, sending_policy_of(settings)) as core,
        open_linking(store, core.directory, settings) as linking,
    ):
        yield BotServices(
            core, linking, settings.bot_tenant, timezone, settings.public_url or "", settings.office or ""
        )
