"""The verb bot with a folder of bots in ADA_SCENARIOS: one process for all bots that have an account in a channel.

A bot whose folder, or token, comes while it runs is started; one that is gone is stopped.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from bots.services import BotServices
from cli.processes.bot_folders import BotFolders
from cli.services.scenarios import max_age_of
from cli.settings.bot_folders import BotFolder
from cli.settings.settings import Configuration
from core.errors import SetupError
from core.redis.cancel_and_wait import cancel_and_wait
from core.services import Services
from core.updates.bot_calls import BotCalls
from couriers import telegram_bot
from couriers.channel import receiving
from couriers.inbound import events_ingress, telegram_gathering
from couriers.receiving.accounts import Account, Accounts
from couriers.receiving.poller import Poller, Source
from couriers.receiving.poller_lease import Lease
from couriers.receiving.receiver import open_receiver


async def run_bots(
    channel: str, configuration: Configuration, services: BotServices, stop: asyncio.Event, ready: Callable[..., None]
) -> None:
    """Get the updates of all bots in a channel until a stop is requested. Raises SetupError, StoreError."""
    core, name = services.core, receiving()[channel].process
    open_account_of = open_telegram if channel == telegram_bot.CHANNEL else partial(open_polled, channel)
    if configuration.settings.bot_webhook_url or configuration.settings.max_webhook_url:
        raise SetupError("several bots are polled: remove ADA_BOT_WEBHOOK_URL and ADA_MAX_WEBHOOK_URL")
    gatherer = telegram_gathering(core.store, core.client, "").worker if channel == telegram_bot.CHANNEL else None
    await events_ingress(core.store, core.client, "")[channel].open()
    await BotCalls(core.client, "", channel).open()

    async def start(bot: BotFolder) -> None:
        if bot.has_account(channel):
            accounts.add(bot.tenant, await asyncio.to_thread(open_account_of, bot, core, accounts.lease))

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


def open_polled(channel: str, bot: BotFolder, services: Services, lease: Lease) -> Account:
    receiver = open_receiver(receiving()[channel], bot.configuration.channel(channel), polls=True)
    assert receiver.source
    assert receiver.make
    poller = poller_of(bot, channel, services, receiver.source, lease)
    return Account(poller.run, receiver.refused, receiver.make, receiver.close)


def poller_of(bot: BotFolder, channel: str, services: Services, source: Source, lease: Lease) -> Poller:
    """Return what gets the updates of a bot by polling."""
    ingress = events_ingress(services.store, services.client, bot.tenant, max_age_of(bot.folder))[channel]
    return Poller(services.store, source, ingress, lease)
