"""The verb courier: one process that delivers through one channel.

Exit codes: 0 after a request to stop, 1 when the provider could not be reached at the start (a restart may help),
2 for wrong settings, 3 when the account is halted and an operator is needed.
"""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from cli.command import FAILURE, OPERATOR_NEEDED, SUCCESS, Command, CommandFailed
from cli.commands.parts.couriers_of_folders import run_couriers
from cli.processes.data_directory import prepare_data_directory, private_directory
from cli.processes.health import HEALTH_FILE, add_healthy_option, is_healthy, touch_while_working
from cli.processes.noted_process import NotedProcess, noted_process
from cli.processes.startup import collect_garbage_less_often, configure_logging, run_with_restarts, stop_requested
from cli.processes.supervisor import announce
from cli.services.store import open_store
from cli.settings.bot_folders import has_many
from cli.settings.secrets import receiver
from cli.settings.settings import Configuration, courier_module, load
from core.errors import SetupError
from core.model.backoff import Backoff
from core.processes import ProcessState
from core.redis.cancel_and_wait import cancel_and_wait
from couriers.channel import channels
from couriers.sending.interface import Courier, HasBalance
from couriers.sending.options import CourierOptions
from couriers.sending.runtime import Runtime

BALANCE_INTERVAL = 600.0
"""Seconds between two readings of the balance of an account."""


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("channel", choices=sorted(channels()), help="the channel to deliver through")
    add_healthy_option(parser, "process of this channel")


def run(arguments: Namespace) -> int:
    configuration = load(may_receive=receiver(arguments.channel))
    directory = courier_directory(configuration, arguments.channel)
    if arguments.healthy:
        return SUCCESS if is_healthy(directory / HEALTH_FILE) else FAILURE
    configure_logging(configuration.settings)
    prepare_data_directory(configuration.settings.data)
    private_directory(private_directory(directory.parent) / directory.name)
    return run_with_restarts(partial(run_courier, configuration, arguments.channel, directory))


def courier_directory(configuration: Configuration, channel: str) -> Path:
    return configuration.settings.data.absolute() / "couriers" / channel


async def run_courier(configuration: Configuration, channel: str, directory: Path) -> int:
    is_one_of_many = channels()[channel].is_per_bot and has_many(configuration.settings)
    settings = None if is_one_of_many else configuration.channel(channel)
    data = configuration.settings.data
    async with (
        open_store(configuration, waits=True) as store,
        noted_process(store, "courier", channel, data=data) as process,
    ):
        stop = stop_requested()  # before, a signal simply ends the process
        if is_one_of_many:
            await run_couriers(configuration, channel, directory, store, process, stop)
            return SUCCESS
        courier = await open_courier(channel, settings, directory)
        collect_garbage_less_often()
        try:
            options = courier_options(channel, settings, configuration.settings.lease)
            return await deliver(Runtime(store, courier, options), process, stop, directory / HEALTH_FILE)
        finally:
            await courier.close()


async def open_courier(channel: str, settings: Any, directory: Path) -> Courier:
    """Sign in at the provider. Exit code 1 if it refuses: that may be an outage, so the courier is restarted."""
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


async def deliver(runtime: Runtime, process: NotedProcess, stop: asyncio.Event, health_file: Path) -> int:
    stopping = asyncio.create_task(stop.wait())
    stopping.add_done_callback(lambda _: runtime.stop())
    courier = runtime.courier
    beside = [
        asyncio.create_task(one)
        for one in (touch_while_working(lambda: runtime.claims, health_file), note_balance(courier, process))
    ]
    try:
        await runtime.run(lambda: is_ready(courier, process))
    finally:
        await cancel_and_wait(stopping, *beside)
    if runtime.halted:
        process.ends(ProcessState.HALTED, runtime.halted)
        return OPERATOR_NEEDED
    return SUCCESS


def is_ready(courier: Courier, process: NotedProcess) -> None:
    announce(channel=courier.channel, account=courier.account)
    process.runs(account=courier.account)


async def note_balance(courier: Courier, process: NotedProcess) -> None:
    """Note what is left on an account that is paid in advance. It is asked for again every ten minutes."""
    if not isinstance(courier, HasBalance):
        return
    while True:
        process.note(balance=courier.balance, low_balance=courier.low_balance)
        await asyncio.sleep(BALANCE_INTERVAL)
        with suppress(SetupError):  # the provider is away; an attempt shows it
            courier.balance = await courier.check()


COMMANDS: Mapping[str, Command] = {"courier": Command(declare, run)}
