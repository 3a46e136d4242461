"""The verb courier: one process that delivers through one channel.

Exit codes: 0 after a request to stop, 3 when the account is halted and an operator is needed, 2 for wrong settings,
1 when the provider could not be reached at the start (worth another try).
"""

import asyncio
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from cli.command import FOR_THE_OPERATOR, GOOD, NO, Command, NotDone
from cli.processes.startup import log_to_stderr, opened_store, stop_requested
from cli.processes.supervisor import announce
from cli.settings.settings import Configuration, channels, courier_module, load
from core.courier.interface import Courier
from core.courier.options import CourierOptions
from core.courier.runtime import Runtime
from core.errors import SetupError

PULSE = "pulse"
PULSE_EVERY = 10.0
STALE = 60.0
"""Seconds after which a courier that has not looked into the queue is not healthy."""


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("channel", choices=channels(), help="the channel to deliver through")
    parser.add_argument(
        "--healthy", action="store_true", help="start nothing; say whether this channel's process lives"
    )


def run(arguments: Namespace) -> int:
    configuration = load()
    directory = directory_of(configuration, arguments.channel)
    if arguments.healthy:
        return GOOD if is_fresh(directory / PULSE) else NO
    log_to_stderr(configuration.settings)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return asyncio.run(serve_channel(configuration, arguments.channel, directory))


def directory_of(configuration: Configuration, channel: str) -> Path:
    return configuration.settings.data.absolute() / "couriers" / channel


def is_fresh(pulse: Path) -> bool:
    return pulse.exists() and time.time() - pulse.stat().st_mtime < STALE


async def serve_channel(configuration: Configuration, channel: str, directory: Path) -> int:
    settings = configuration.channel(channel)
    stop = stop_requested()
    async with opened_store(configuration) as store:
        courier = await opened(channel, settings, directory)
        try:
            options = manner_of(channel, settings, configuration.settings.lease)
            return await deliver(Runtime(store, courier, options), stop, directory / PULSE)
        finally:
            await courier.close()


async def opened(channel: str, settings: Any, directory: Path) -> Courier:
    """Signs in at the provider. Its refusal may be an outage, so it is no reason never to be started again."""
    try:
        courier: Courier = await courier_module(channel).open(settings, directory)
    except SetupError as fault:
        raise NotDone(str(fault)) from fault
    return courier


def manner_of(channel: str, settings: Any, lease: timedelta) -> CourierOptions:
    """A channel with a `callback_url` has its delivery reports sent there."""
    base = getattr(settings, "callback_url", None)
    return CourierOptions(lease=lease, report_url=f"{base.rstrip('/')}/v1/receipts/{channel}" if base else "")


async def deliver(runtime: Runtime, stop: asyncio.Event, pulse: Path) -> int:
    waiting = asyncio.create_task(stop.wait())
    waiting.add_done_callback(lambda _: runtime.stop())
    beating = asyncio.create_task(beat(runtime, pulse))
    announce(channel=runtime.courier.channel, account=runtime.courier.account)
    try:
        await runtime.run()
    finally:
        waiting.cancel()
        beating.cancel()
    return FOR_THE_OPERATOR if runtime.halted else GOOD


async def beat(runtime: Runtime, pulse: Path) -> None:
    """Touches a file as long as the runtime goes on looking into the queue, for health checks."""
    seen = -1
    while True:
        if runtime.claims > seen:
            seen = runtime.claims
            await asyncio.to_thread(pulse.touch)
        await asyncio.sleep(PULSE_EVERY)


COMMANDS: Mapping[str, Command] = {"courier": Command(declare, run)}
