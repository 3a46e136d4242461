"""The verb serve: one process that answers HTTP. As many as wished may run, each on a port of its own."""

import asyncio
import gc
import logging
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from cli.command import GOOD, Command, NotDone, declare_nothing
from cli.processes import announce
from cli.settings import Configuration, Settings, load
from cli.values import Address
from cli.wiring import log_to_stderr, opened_store, stop_requested
from core.access import Access
from core.channels import Channels
from core.histories import Histories
from core.idempotency import Idempotency
from core.queue import Queue
from core.store import Store
from core.tracker import Tracker
from delivery.app import build
from delivery.house import House
from delivery.options import Options
from delivery.wire import Runner

GRACE = 3.0
"""Seconds for requests under way when we are asked to stop; streams end at once."""

BACKLOG = 1024


def run(arguments: Namespace) -> int:
    configuration = load()
    log_to_stderr(configuration.settings)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)  # a line per request costs as much as the request
    return asyncio.run(serve(configuration))


async def serve(configuration: Configuration) -> int:
    stop = stop_requested()
    settings = configuration.settings
    spare_the_collector()
    async with opened_store(configuration) as store, opened_house(store, settings) as house:
        async with listening(house, settings) as url:
            announce(http=url)
            await stop.wait()
    return GOOD


def spare_the_collector() -> None:
    """What is loaded by now stays, and requests leave no cycles behind: looking for them took 5 % of a busy process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@asynccontextmanager
async def opened_house(store: Store, settings: Settings) -> AsyncIterator[House]:
    """All services of one process, wired; the first key is made if it was set."""
    access, channels, tracker = Access(store), Channels(store), Tracker(store)
    if settings.api_key:
        await access.ensure(settings.api_key)
    try:
        yield House(
            histories=Histories(store, channels),
            tracker=tracker,
            access=access,
            idempotency=Idempotency(store),
            queue=Queue(store),
            channels=channels,
            store=store,
        )
    finally:
        await tracker.close()


@asynccontextmanager
async def listening(house: House, settings: Settings) -> AsyncIterator[str]:
    """Answers HTTP until the block is left; yields the URL, with the port that was really taken. Raises NotDone."""
    address = settings.http
    options = Options(rate=settings.http_rate, burst=settings.http_burst)
    runner = Runner(build(house, options), shutdown_timeout=GRACE)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host, address.port, backlog=BACKLOG)
        await site.start()
        yield f"http://{bound(runner, address)}"
    except OSError as fault:
        raise NotDone(f"cannot listen on {address}: {fault.strerror or fault}; set ADA_HTTP to another") from fault
    finally:
        await runner.cleanup()


def bound(runner: web.AppRunner, address: Address) -> Address:
    host, port, *_ = runner.addresses[0]
    return Address(address.host or host, port)


COMMANDS: Mapping[str, Command] = {"serve": Command(declare_nothing, run)}
