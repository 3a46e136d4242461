"""The verb serve: one process that answers HTTP. As many as wished may run, each on a port of its own."""

import asyncio
import gc
import logging
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from cli.command import GOOD, Command, NotDone, declare_nothing
from cli.processes.startup import log_to_stderr, opened_store, stop_requested
from cli.processes.supervisor import announce
from cli.settings.parsing import Address
from cli.settings.settings import Configuration, Settings, load
from core.admission.api_keys import ApiKeys
from core.admission.idempotency import Idempotency
from core.history.channels import Channels
from core.history.deliveries import Deliveries
from core.history.tracker import Tracker
from core.queue.queue import Queue
from core.redis.store import Store
from delivery.app import build
from delivery.http.options import Options
from delivery.http.server import Runner
from delivery.services import Services

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
    async with opened_store(configuration) as store, opened_house(store, settings) as services:
        async with listening(services, settings) as url:
            announce(http=url)
            await stop.wait()
    return GOOD


def spare_the_collector() -> None:
    """What is loaded by now stays, and requests leave no cycles behind: looking for them took 5 % of a busy process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@asynccontextmanager
async def opened_house(store: Store, settings: Settings) -> AsyncIterator[Services]:
    """All services of one process, wired; the first key is made if it was set."""
    access, channels, tracker = ApiKeys(store), Channels(store), Tracker(store)
    if settings.api_key:
        await access.ensure(settings.api_key)
    try:
        yield Services(
            deliveries=Deliveries(store, channels),
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
async def listening(services: Services, settings: Settings) -> AsyncIterator[str]:
    """Answers HTTP until the block is left; yields the URL, with the port that was really taken. Raises NotDone."""
    address = settings.http
    options = Options(rate=settings.http_rate, burst=settings.http_burst)
    runner = Runner(build(services, options), shutdown_timeout=GRACE)
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
