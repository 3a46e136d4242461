"""The process of the verb scenarios: runs the bot of ADA_SCENARIOS until it is asked to stop.

Exit codes: 0 after a request to stop, 2 for wrong settings.
"""

import asyncio
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.command import FAILURE, SUCCESS
from cli.processes.data_directory import prepare_data_directory, private_directory
from cli.processes.health import HEALTH_FILE, add_healthy_option, is_healthy
from cli.processes.noted_process import NotedProcess, noted_process
from cli.processes.startup import collect_garbage_less_often, configure_logging, stop_requested
from cli.processes.supervisor import announce
from cli.services.models import open_models
from cli.services.sending_policy import sending_policy_of
from cli.services.sign_in import open_sign_in
from cli.services.store import open_store
from cli.settings.secrets import receiver
from cli.settings.settings import Configuration, Settings, load
from core.errors import SetupError
from core.redis.cancel_and_wait import cancel_and_wait
from providers.models import FileCache, Models
from providers.sign_in import SignIn
from scenarios.check.reloading import ActiveBot
from scenarios.context import ScenarioServices
from scenarios.execution.last_good import LastGood
from scenarios.execution.opening import Options, open_services
from scenarios.execution.process import Process, ProcessOptions
from scenarios.execution.secrets import secret_variables
from scenarios.execution.versions import Versions
from scenarios.plugins import started


def declare_process(parser: ArgumentParser) -> None:
    add_healthy_option(parser, "process")


def run_process(arguments: Namespace) -> int:
    configuration = load(may_receive=receiver("scenarios"))
    directory = configuration.settings.data.absolute() / "scenarios"
    if arguments.healthy:
        return SUCCESS if is_healthy(directory / HEALTH_FILE) else FAILURE
    folder = configuration.settings.scenarios
    if folder is None:
        raise SetupError("ADA_SCENARIOS must be set: the folder of a bot, for example one of `./ada scenarios new DIR`")
    configure_logging(configuration.settings)
    prepare_data_directory(configuration.settings.data)
    private_directory(directory)
    return asyncio.run(run_scenarios(configuration, folder, directory / HEALTH_FILE))


async def run_scenarios(configuration: Configuration, folder: Path, health_file: Path) -> int:
    settings = configuration.settings
    bot = ActiveBot(folder)
    async with (
        open_store(configuration, waits=True) as store,
        noted_process(store, "scenarios", healthy=health_file) as noted,
        open_models(settings) as models,
        open_services(store, options_of(settings, models, await open_sign_in(store, settings))) as services,
        started(services, await _settings_in_force(services, bot)) as platform,
    ):
        process = Process(
            platform.services,
            bot,
            platform.types,
            options=ProcessOptions(lease=min(settings.lease, ProcessOptions().lease), secrets=_secrets(configuration)),
        )
        stopping = asyncio.create_task(stop_requested().wait())
        stopping.add_done_callback(lambda _: process.stop())
        collect_garbage_less_often()
        try:
            await process.run(lambda: is_ready(noted, folder, bot))
        finally:
            await cancel_and_wait(stopping)
    return SUCCESS


def is_ready(noted: NotedProcess, folder: Path, bot: ActiveBot) -> None:
    announce(scenarios=str(folder), version=bot.version)
    noted.runs()


def _secrets(configuration: Configuration) -> Mapping[str, str]:
    own = {name: setting.text for name, setting in configuration.raw.items()}
    return secret_variables({**os.environ, **own})


async def _settings_in_force(services: ScenarioServices, bot: ActiveBot) -> Mapping[str, Any]:
    """Return the settings of the bot's files, or of its last good version if they have mistakes. Raises StoreError."""
    await LastGood(services.core.store, Versions(services.core.store), services.tenant, bot).restore()
    return bot.bot.settings


def options_of(settings: Settings, models: Models, sign_in: SignIn | None) -> Options:
    """Return what the settings say to the actions."""
    return Options(
        tenant=settings.bot_tenant,
        timezone=settings.tenant_timezones.get(settings.bot_tenant, settings.timezone),
        policy=sending_policy_of(settings),
        bot_token=settings.bot_token or "",
        bot_api_url=settings.bot_api_url or "",
        models=models,
        pictures=FileCache(
            settings.data.absolute() / "pictures", settings.ai_cache_megabytes * 10**6, settings.retention
        ),
        sign_in=sign_in,
        allow_private=settings.webhook_allow_private,
    )
