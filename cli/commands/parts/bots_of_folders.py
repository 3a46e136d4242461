"""The verb bot with a folder of bots in ADA_SCENARIOS: one process for all bots that have an account in a channel.

A bot whose folder, or token, comes while it runs is started; one that is gone is stopped.
"""

import asyncio
from collections.abc import Callable, Mapping

from bots.receiving.accounts import Account, Accounts
from bots.receiving.poller import Poller, Source
from bots.receiving.poller_lease import Lease
from bots.services import BotServices
from cli.processes.bot_folders import BotFolders
from cli.services.scenarios import max_age_of
from cli.settings.bot_folders import BotFolder
from cli.settings.settings import Configuration
from core.errors import SetupError
from core.redis.cancel_and_wait import cancel_and_wait
from core.services import Services
from core.updates.bot_calls import BotCalls
from providers import max as max_provider
from providers import telegram_bot, vk
from providers.inbound import events_ingress, telegram_gathering

Open = Callable[[BotFolder, Services, Lease], Account]
"""Opens the account of a bot. Raises SetupError."""


async def run_bots(
    channel: str, configuration: Configuration, services: BotServices, stop: asyncio.Event, ready: Callable[..., None]
) -> None:
    """Get the updates of all bots in a channel until a stop is requested. Raises SetupError, StoreError."""
    core, name = services.core, channel.removesuffix("-bot")
    if configuration.settings.bot_webhook_url or configuration.settings.max_webhook_url:
        raise SetupError("several bots are polled: remove ADA_BOT_WEBHOOK_URL and ADA_MAX_WEBHOOK_URL")
    gatherer = telegram_gathering(core.store, core.client, "").worker if channel == telegram_bot.CHANNEL else None
    await events_ingress(core.store, core.client, "")[channel].open()
    await BotCalls(core.client, "", channel).open()

    async def start(bot: BotFolder) -> None:
        if bot.has_account(channel):
            accounts.add(bot.tenant, await asyncio.to_thread(OPENERS[channel], bot, core, accounts.lease))

    async def note(tenant: str, reason: str) -> None:
        await folders.note(tenant, reason)

    accounts = Accounts(core.store, core.client, channel, note, gatherer)
    folders = BotFolders(configuration, core.store, f"bot {name}", start, accounts.remove)
    await folders.look()
    following, stopping = asyncio.create_task(folders.keep()), asyncio.create_task(stop.wait())
    stopping.add_done_callback(lambda _: accounts.stop())
    try:
        await accounts.run(lambda: ready(bot=name))
    finally:
        await cancel_and_wait(following, stopping)


def open_telegram(bot: BotFolder, services: Services, lease: Lease) -> Account:
    from bots.telegram.account import open_account

    settings = bot.configuration.settings
    token, url = settings.bot_token or "", settings.bot_api_url or ""
    return open_account(token, url, services, bot.tenant, lease, max_age_of(bot.folder))


def open_vk(bot: BotFolder, services: Services, lease: Lease) -> Account:
    from bots.vk.calls import VkCalls
    from bots.vk.long_poll import LongPoll
    from providers.vk.client import Client
    from providers.vk.errors import TokenRefused

    settings = bot.configuration.channel(vk.CHANNEL)
    client = Client(settings.token, settings.api_url)
    poller = poller_of(bot, vk.CHANNEL, services, LongPoll(client), lease)
    return Account(poller.run, TokenRefused, VkCalls(client).make, client.close)


def open_max(bot: BotFolder, services: Services, lease: Lease) -> Account:
    from bots.max.calls import MaxCalls
    from bots.max.long_poll import LongPoll
    from providers.max.client import Client
    from providers.max.errors import TokenRefused

    settings = bot.configuration.channel(max_provider.CHANNEL)
    client = Client(settings.token, settings.api_url, settings.timeout, settings.ca)
    poller = poller_of(bot, max_provider.CHANNEL, services, LongPoll(client), lease)
    return Account(poller.run, TokenRefused, MaxCalls(client).make, client.close)


def poller_of(bot: BotFolder, channel: str, services: Services, source: Source, lease: Lease) -> Poller:
    """Return what gets the updates of a bot by polling."""
    ingress = events_ingress(services.store, services.client, bot.tenant, max_age_of(bot.folder))[channel]
    return Poller(services.store, source, ingress, lease)


OPENERS: Mapping[str, Open] = {
    telegram_bot.CHANNEL: open_telegram,
    vk.CHANNEL: open_vk,
    max_provider.CHANNEL: open_max,
}
