"""The process of a bot, and its poller, in the process of a test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path

from cli.commands.parts.bot import ReceivingBots
from cli.settings.settings import load
from core.queue import QueueClient
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.services import Services
from core.updates.bot_calls import BotCalls, Make
from couriers.inbound import events_ingress
from couriers.receiving.poller import Poller, PollerLease, Sink, Source
from scenarios.bot.new_bot import TEACHER
from scenarios.execution.active_bot import ActiveBot
from scenarios.execution.opening import ScenarioOptions, bot_services
from scenarios.execution.process import Process, ProcessOptions
from tests.support.stack import TENANT


def receiving_bot(token: str, url: str, core: Services, **settings: str) -> ReceivingBots:
    """The bot of `./ada bot telegram`, to `run`."""
    own = {"ADA_BOT_TOKEN": token, "ADA_BOT_API_URL": url, "ADA_BOT_TENANT": TENANT, **settings}
    return ReceivingBots(load(own, Path("/nowhere")), "telegram-bot", core)


def scenarios(folder: Path, max_age: timedelta = timedelta(hours=1)) -> dict[str, str]:
    """The settings of a bot with scenarios."""
    folder.mkdir(parents=True, exist_ok=True)
    seconds = int(max_age.total_seconds())
    (folder / "settings.yaml").write_text(f"event_manager: {{max_event_age_seconds: {seconds}}}\n")
    return {"ADA_SCENARIOS": str(folder)}


@cache
def teacher() -> ActiveBot:
    """The dialog of teachers, loaded once: nothing changes its files."""
    return ActiveBot(TEACHER)


@asynccontextmanager
async def answering(core: Services, options: ScenarioOptions, folder: Path | None = None) -> AsyncIterator[None]:
    """The process that answers, by default with the dialog of teachers; it is killed at the end."""
    process = Process(core, options=ProcessOptions(lease=timedelta(seconds=1)))
    async with bot_services(core, options) as services:
        await process.open()
        await process.add(services, ActiveBot(folder) if folder else teacher())
        task = asyncio.create_task(process.run())
        try:
            yield
        finally:
            await cancel_and_wait(task)


@asynccontextmanager
async def running(bots: ReceivingBots) -> AsyncIterator[None]:
    """The bot from its begin to its end."""
    stop, ready = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(bots.run(stop, lambda **_: ready.set()))
    readiness = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait({task, readiness}, return_when=asyncio.FIRST_COMPLETED)
        yield
    finally:
        stop.set()
        await cancel_and_wait(readiness)
        await task


@asynccontextmanager
async def polled(store: Store, channel: str, source: Source, make: Make) -> AsyncIterator[None]:
    """The bot of a channel, with what it polls and how it makes calls; it is killed at the end."""
    client = QueueClient(store)
    ingress, calls = events_ingress(store, client, TENANT)[channel], BotCalls(client, TENANT, channel)
    await ingress.open()
    await calls.open()
    tasks = [asyncio.create_task(calls.worker(make).run()), asyncio.create_task(poll(store, source, ingress))]
    yield
    await cancel_and_wait(*tasks)


async def poll(store: Store, source: Source, ingress: Sink) -> None:
    """Poll until cancelled, as the only account of a process."""
    lease = PollerLease(store)
    holding = asyncio.create_task(lease.run())
    try:
        await Poller(store, source, ingress, lease).run()
    finally:
        await cancel_and_wait(holding)
