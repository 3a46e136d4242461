"""Opens what the actions of one process use."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from core.directory.linking import Linking
from core.orders import SendingPolicy
from core.redis.store import Store
from core.services import Services
from core.services import open_services as open_core
from providers.models import FileCache, Models
from providers.sign_in import SignIn
from scenarios.context import ScenarioServices, Telegram
from scenarios.execution.conversations import StoredConversations


@dataclass(frozen=True, slots=True)
class ScenarioOptions:
    """The settings of a bot of scenarios. `telegram`: opens the client of the Bot API; None for a bot that is not in
    Telegram. `models`: the caller closes them. `pictures`: where actions draw.
    """

    tenant: str = "default"
    timezone: tzinfo = UTC
    policy: SendingPolicy | None = None
    telegram: Callable[[], Telegram] | None = None
    models: Models = field(default_factory=Models.not_set_up)
    pictures: FileCache = field(default_factory=FileCache.nowhere)
    sign_in: SignIn | None = None
    linking: Linking | None = None
    public_url: str = ""
    office: str = ""
    allow_private: bool = False


@asynccontextmanager
async def open_services(store: Store, options: ScenarioOptions) -> AsyncIterator[ScenarioServices]:
    """Open the services of one bot, until the end of the block. Raises SetupError."""
    async with open_core(store, options.policy) as core, bot_services(core, options) as services:
        yield services


@asynccontextmanager
async def bot_services(core: Services, options: ScenarioOptions) -> AsyncIterator[ScenarioServices]:
    """Open what a bot has besides the services that all bots of a process share. Raises SetupError."""
    telegram = options.telegram() if options.telegram else None
    try:
        yield ScenarioServices(
            core=core,
            telegram=telegram,
            tenant=options.tenant,
            timezone=options.timezone,
            conversations=StoredConversations(core.store, options.tenant),
            sign_in=options.sign_in,
            linking=options.linking,
            public_url=options.public_url,
            office=options.office,
            models=options.models,
            pictures=options.pictures,
            allow_private=options.allow_private,
        )
    finally:
        if telegram:
            await telegram.close()
