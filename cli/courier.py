"""The verb courier: one process that delivers through one channel.

Exit codes: 0 after a request to stop, 3 when the account is halted and an operator is needed, 2 for wrong settings,
1 when the provider could not be reached at the start (worth another try).
"""

import asyncio
import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from cli.command import FOR_THE_OPERATOR, GOOD, Command, NotDone
from cli.processes import announce
from cli.settings import Configuration, channels, courier_module, load
from cli.wiring import log_to_stderr, opened_store, stop_requested
from core.errors import SetupError
from core.parcel_run import Manner
from core.port import Courier
from core.runtime import Runtime

log = logging.getLogger(__name__)


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("channel", choices=channels(), help="the channel to deliver through")


def run(arguments: Namespace) -> int:
    configuration = load()
    log_to_stderr(configuration.settings)
    return asyncio.run(serve_channel(configuration, arguments.channel))


async def serve_channel(configuration: Configuration, channel: str) -> int:
    settings = configuration.channel(channel)
    stop = stop_requested()
    async with opened_store(configuration) as store:
        courier = await opened(configuration, channel, settings)
        try:
            return await deliver(Runtime(store, courier, manner_of(channel, settings)), stop)
        finally:
            await courier.close()


async def opened(configuration: Configuration, channel: str, settings: Any) -> Courier:
    """Signs in at the provider. Its refusal may be an outage, so it is no reason never to be started again."""
    directory = configuration.settings.data.absolute() / "couriers" / channel
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        courier: Courier = await courier_module(channel).open(settings, directory)
    except SetupError as fault:
        raise NotDone(str(fault)) from fault
    return courier


def manner_of(channel: str, settings: Any) -> Manner:
    """A channel with a `callback_url` has its delivery reports sent there."""
    base = getattr(settings, "callback_url", None)
    return Manner(report_url=f"{base.rstrip('/')}/v1/receipts/{channel}") if base else Manner()


async def deliver(runtime: Runtime, stop: asyncio.Event) -> int:
    waiting = asyncio.create_task(stop.wait())
    waiting.add_done_callback(lambda _: runtime.stop())
    announce(channel=runtime.courier.channel, account=runtime.courier.account)
    await runtime.run()
    return FOR_THE_OPERATOR if runtime.halted else GOOD


COMMANDS: Mapping[str, Command] = {"courier": Command(declare, run)}
