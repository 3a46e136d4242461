"""The process of the verb scenarios: runs the bots of ADA_SCENARIOS, and the dialog of teachers, until it is asked to
stop.

Exit codes: 0 after a request to stop, 2 for wrong settings.
"""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cli.command import FAILURE, SUCCESS
from cli.processes.bot_folders import BotFolders
from cli.processes.data_directory import prepare_data_directory, private_directory
from cli.processes.noted_process import NotedProcess, noted_process
from cli.processes.startup import (
    HEALTH_FILE,
    add_healthy_option,
    collect_garbage_less_often,
    configure_logging,
    is_healthy,
    run_with_restarts,
    stop_requested,
)
from cli.processes.supervisor import announce
from cli.services.accounts import ConsoleAccounts
from cli.services.core import open_linking, sending_policy_of
from cli.services.models import open_models
from cli.services.scenarios import known_secrets
from cli.services.sign_in import open_sign_in
from cli.services.store import open_store
from cli.settings.bot_folders import BotFolder
from cli.settings.secrets import receiver
from cli.settings.settings import Configuration, Settings, load
from core.directory.linking import Linking
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.services import Services, open_services
from providers.models import FileCache, Models
from providers.sign_in import SignIn
from scenarios.bot.new_bot import TEACHER
from scenarios.context import ScenarioServices, Telegram
from scenarios.execution.active_bot import ActiveBot, fingerprint
from scenarios.execution.opening import ScenarioOptions, bot_services
from scenarios.execution.process import Process, ProcessOptions
from scenarios.execution.versions import LastGood, Versions
from scenarios.plugins import started


def declare_process(parser: ArgumentParser) -> None:
    add_healthy_option(parser, "process")


def run_process(arguments: Namespace) -> int:
    configuration = load(may_receive=receiver("scenarios"))
    directory = configuration.settings.data.absolute() / "scenarios"
    if arguments.healthy:
        return SUCCESS if is_healthy(directory / HEALTH_FILE) else FAILURE
    folder = configuration.settings.scenarios or TEACHER
    fingerprint(folder)  # raises SetupError if it is no folder
    configure_logging(configuration.settings)
    prepare_data_directory(configuration.settings.data)
    private_directory(directory)
    return run_with_restarts(partial(run_scenarios, configuration, folder, directory / HEALTH_FILE))


async def run_scenarios(configuration: Configuration, folder: Path, health_file: Path) -> int:
    settings = configuration.settings
    async with (
        open_store(configuration, waits=True) as store,
        noted_process(store, "scenarios", healthy=health_file, data=settings.data) as noted,
    ):
        accounts = ConsoleAccounts(store, "scenarios")
        configuration = await accounts.added_to(configuration)
        noted.has_old_settings = accounts.have_changed
        return await run_bots(configuration, folder, store, noted)


async def run_bots(configuration: Configuration, folder: Path, store: Store, noted: NotedProcess) -> int:
    settings = configuration.settings
    async with (
        open_models(settings) as models,
        open_services(store, sending_policy_of(settings)) as core,
        open_linking(store, core.directory, settings) as linking,
    ):
        options = ProcessOptions(
            lease=min(settings.lease, ProcessOptions().lease), secrets=known_secrets(configuration)
        )
        process = Process(core, options=options)
        bots = Bots(process, core, models, await open_sign_in(store, settings), linking)
        folders = BotFolders(configuration, store, "scenarios", bots.start, bots.stop)
        await process.open()
        await folders.check()
        following = asyncio.create_task(folders.keep())
        stopping = asyncio.create_task(stop_requested().wait())
        stopping.add_done_callback(lambda _: process.stop())
        collect_garbage_less_often()
        try:
            await process.run(lambda: is_ready(noted, folder, bots.versions))
        finally:
            await cancel_and_wait(stopping, following)
            await bots.close()
    return SUCCESS


def is_ready(noted: NotedProcess, folder: Path, versions: Mapping[str, str]) -> None:
    announce(scenarios=str(folder), version=", ".join(sorted(set(versions.values()))))
    noted.runs()


class Bots:
    """The bots that a process of the scenarios has opened: each with its plugins and its client of Telegram."""

    def __init__(
        self, process: Process, core: Services, models: Models, sign_in: SignIn | None, linking: Linking
    ) -> None:
        self._process = process
        self._core = core
        self._models = models
        self._sign_in = sign_in
        self._linking = linking
        self._opened: dict[str, AsyncExitStack] = {}
        self._teacher: ActiveBot | None = None
        self.versions: dict[str, str] = {}

    async def start(self, bot: BotFolder) -> None:
        """Serve a bot. Raises SetupError if its settings are wrong, StoreError."""
        given = options_of(bot.configuration.settings, bot.tenant, self._models, self._sign_in)
        options = replace(given, linking=self._linking)
        active = await asyncio.to_thread(ActiveBot, bot.folder, bot.environment)
        async with AsyncExitStack() as stack:
            services = await stack.enter_async_context(bot_services(self._core, options))
            platform = await stack.enter_async_context(started(services, await _in_force(services, active)))
            await self._process.add(platform.services, active, platform.types, await self._beside(active))
            self.versions[bot.tenant] = active.version
            self._opened[bot.tenant] = stack.pop_all()

    async def _beside(self, active: ActiveBot) -> ActiveBot | None:
        """Return the dialog of teachers, for a bot other than itself: a reload may switch it on."""
        if active.folder == TEACHER:
            return None
        self._teacher = self._teacher or await asyncio.to_thread(ActiveBot, TEACHER)
        return self._teacher

    async def stop(self, tenant: str) -> None:
        """Serve the bot of a tenant no longer. Raises StoreError."""
        self.versions.pop(tenant, None)
        await self._process.remove(tenant)
        if opened := self._opened.pop(tenant, None):
            await opened.aclose()

    async def close(self) -> None:
        for opened in self._opened.values():
            await opened.aclose()


async def _in_force(services: ScenarioServices, bot: ActiveBot) -> Mapping[str, Any]:
    """Return the settings of the bot's files, or of its last good version if they have mistakes. Raises StoreError."""
    await LastGood(services.core.store, Versions(services.core.store), services.tenant, bot).restore()
    return bot.bot.settings


def options_of(settings: Settings, tenant: str, models: Models, sign_in: SignIn | None) -> ScenarioOptions:
    """Return what the settings say to the actions of a tenant's bot."""
    return ScenarioOptions(
        tenant=tenant,
        timezone=settings.tenant_timezones.get(tenant, settings.timezone),
        policy=sending_policy_of(settings),
        telegram=partial(open_telegram, settings.bot_token, settings.bot_api_url) if settings.bot_token else None,
        models=models,
        pictures=FileCache(
            settings.data.absolute() / "pictures", settings.ai_cache_megabytes * 10**6, settings.retention
        ),
        sign_in=sign_in,
        public_url=settings.public_url or "",
        office=settings.office or "",
        allow_private=settings.webhook_allow_private,
    )


def open_telegram(token: str, api_url: str | None) -> Telegram:
    """Return the client of the Bot API. Raises SetupError."""
    from couriers.telegram_bot.client import NamedCalls  # it takes a second; most bots are also in Telegram

    return NamedCalls(token, api_url or "")
