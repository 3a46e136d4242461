"""The verb courier with a folder of bots in ADA_SCENARIOS: one process that sends as the bot of each tenant.

The account in the settings of the installation is that of ADA_BOT_TENANT, also if that tenant has no folder.
"""

import asyncio
import logging
from pathlib import Path

from cli.processes.bot_folders import BotFolders
from cli.processes.data_directory import private_directory
from cli.processes.health import HEALTH_FILE, touch_while_working
from cli.processes.noted_process import NotedProcess
from cli.processes.supervisor import announce
from cli.settings.bot_folders import BotFolder, read_accounts
from cli.settings.settings import Configuration, courier_module
from core.errors import SetupError, StoreError
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from couriers.sending.options import CourierOptions
from couriers.sending.several_accounts import SeveralAccounts

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
"""Seconds until a provider that cannot be reached is asked again."""


class Couriers:
    """The couriers of all bots in a channel. `directory`: keeps what each has to remember."""

    def __init__(self, configuration: Configuration, channel: str, directory: Path, store: Store) -> None:
        self._channel = channel
        self._directory = directory
        self.folders = BotFolders(configuration, store, channel, self.start, self.stop, read_accounts)
        options = CourierOptions(lease=configuration.settings.lease)
        self.accounts = SeveralAccounts(store, channel, self.folders.note, options)
        self._opening: dict[str, asyncio.Task[None]] = {}

    async def start(self, bot: BotFolder) -> None:
        """Sign in as a bot, and send as it from then on. Raises SetupError for a setting that is missing."""
        if bot.has_account(self._channel):
            settings = bot.configuration.channel(self._channel)
            self._opening[bot.tenant] = asyncio.create_task(self._open(bot.tenant, settings))

    async def stop(self, tenant: str) -> None:
        """Send as the bot of a tenant no longer."""
        if opening := self._opening.pop(tenant, None):
            await cancel_and_wait(opening)
        await self.accounts.remove(tenant)

    async def close(self) -> None:
        """Stop signing in."""
        await cancel_and_wait(*self._opening.values())

    async def _open(self, tenant: str, settings: object) -> None:
        """Sign in; while the provider refuses it, or cannot be reached, try again from time to time."""
        directory, pause = private_directory(self._directory / tenant), FIRST_PAUSE
        while True:
            try:
                courier = await courier_module(self._channel).open(settings, directory)
                await self.accounts.add(tenant, courier)
                return await self.folders.clear(tenant)
            except SetupError as error:
                await self.folders.note(tenant, str(error))
            except StoreError as fault:
                log.warning("the courier of %s is opened again: %s", tenant, fault)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


async def run_couriers(
    configuration: Configuration,
    channel: str,
    directory: Path,
    store: Store,
    process: NotedProcess,
    stop: asyncio.Event,
) -> None:
    """Send as all bots until a stop is requested. Raises StoreError."""
    couriers = Couriers(configuration, channel, directory, store)
    await couriers.folders.look()
    parts = (couriers.folders.keep(), touch_while_working(lambda: couriers.accounts.claims, directory / HEALTH_FILE))
    beside = [asyncio.create_task(part) for part in (*parts, stop.wait())]
    beside[-1].add_done_callback(lambda _: couriers.accounts.stop())
    announce(channel=channel, account="")
    process.runs()
    try:
        await couriers.accounts.run()
    finally:
        await cancel_and_wait(*beside)
        await couriers.close()
