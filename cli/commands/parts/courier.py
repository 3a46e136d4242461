"""The verb courier: one process that delivers through one channel.

Exit codes: 0 after a request to stop, 1 when the provider could not be reached at the start (a restart may help),
2 for wrong settings, 3 when the account is halted and an operator is needed.
"""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from cli.command import FAILURE, OPERATOR_NEEDED, SUCCESS, Command, CommandFailed
from cli.processes.data_directory import prepare_data_directory, private_directory
from cli.processes.health import HEALTH_FILE, HEALTH_INTERVAL, add_healthy_option, is_healthy
from cli.processes.startup import collect_garbage_less_often, configure_logging, open_store, stop_requested
from cli.processes.supervisor import announce
from cli.settings.secrets import receiver
from cli.settings.settings import Configuration, channels, courier_module, load
from core.courier.interface import Courier
from core.courier.options import CourierOptions
from core.courier.runtime import Runtime
from core.errors import SetupError
from core.model.backoff import Backoff


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("channel", choices=channels(), help="the channel to deliver through")
    add_healthy_option(parser, "process of this channel")


def run(arguments: Namespace) -> int:
    configuration = load(may_receive=receiver(arguments.channel))
    directory = courier_directory(configuration, arguments.channel)
    if arguments.healthy:
        return SUCCESS if is_healthy(directory / HEALTH_FILE) else FAILURE
    configure_logging(configuration.settings)
    prepare_data_directory(configuration.settings.data)
    private_directory(private_directory(directory.parent) / directory.name)
    return asyncio.run(run_courier(configuration, arguments.channel, directory))


def courier_directory(configuration: Configuration, channel: str) -> Path:
    return configuration.settings.data.absolute() / "couriers" / channel


async def run_courier(configuration: Configuration, channel: str, directory: Path) -> int:
    settings = configuration.channel(channel)
    async with open_store(configuration, waits=True) as store:
        stop = stop_requested()  # before, a signal simply ends the process
        courier = await open_courier(channel, settings, directory)
        collect_garbage_less_often()
        try:
            options = courier_options(channel, settings, configuration.settings.lease)
            return await deliver(Runtime(store, courier, options), stop, directory / HEALTH_FILE)
        finally:
            await courier.close()


async def open_courier(channel: str, settings: Any, directory: Path) -> Courier:
    """Signs in at the provider. Exit code 1 if it refuses: that may be an outage, so the courier is restarted."""
    try:
        courier: Courier = await courier_module(channel).open(settings, directory)
    except SetupError as error:
        raise CommandFailed(str(error)) from error
    return courier


def courier_options(channel: str, settings: Any, lease: timedelta) -> CourierOptions:
    """Return what a channel sets itself: `callback_url` for delivery reports, `connections` for the attempts at once,
    `first_pause` and `attempts` for the back-off.
    """
    base_url = getattr(settings, "callback_url", None)
    usual = CourierOptions()
    return CourierOptions(
        lease=lease,
        report_url=f"{base_url.rstrip('/')}/v1/receipts/{channel}" if base_url else "",
        concurrency=getattr(settings, "connections", usual.concurrency),
        backoff=Backoff(
            first=getattr(settings, "first_pause", usual.backoff.first),
            attempts=getattr(settings, "attempts", usual.backoff.attempts),
        ),
    )


async def deliver(runtime: Runtime, stop: asyncio.Event, health_file: Path) -> int:
    stopping = asyncio.create_task(stop.wait())
    stopping.add_done_callback(lambda _: runtime.stop())
    reporting = asyncio.create_task(report_claims(runtime, health_file))
    try:
        await runtime.run(lambda: announce(channel=runtime.courier.channel, account=runtime.courier.account))
    finally:
        stopping.cancel()
        reporting.cancel()
    return OPERATOR_NEEDED if runtime.halted else SUCCESS


async def report_claims(runtime: Runtime, health_file: Path) -> None:
    """Touches the health file while the runtime keeps claiming work."""
    last_claims = -1
    while True:
        if runtime.claims > last_claims:
            last_claims = runtime.claims
            await asyncio.to_thread(health_file.touch)
        await asyncio.sleep(HEALTH_INTERVAL)


COMMANDS: Mapping[str, Command] = {"courier": Command(declare, run)}
