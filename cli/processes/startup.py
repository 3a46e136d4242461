"""What every process of ours does at its start and end: log, find the server, hear the request to stop."""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cli.processes import embedded_valkey as embedded
from cli.settings.settings import Configuration, Settings
from core.errors import SetupError
from core.redis.server_checks import check, configure, sign_layout
from core.redis.store import Store

log = logging.getLogger(__name__)


def log_to_stderr(settings: Settings) -> None:
    """One line per event; the supervisor puts the part's name before it."""
    logging.basicConfig(
        stream=sys.stderr, level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    if settings.log_level != "debug":
        logging.getLogger("telethon").setLevel(logging.WARNING)  # it tells every connection


def stop_requested() -> asyncio.Event:
    """Set by SIGTERM and SIGINT; a second signal ends the process at once."""
    event, loop = asyncio.Event(), asyncio.get_running_loop()

    def request(number: int) -> None:
        loop.remove_signal_handler(number)
        event.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, request, number)
    return event


def redis_url(settings: Settings) -> str:
    """The server that was set, or the embedded one of a running `./ada up`. Raises SetupError."""
    url = settings.redis_url or embedded.find(settings.data / "valkey")
    if url is None:
        raise SetupError(
            f"no Redis: set ADA_REDIS_URL, or start `./ada up` (nothing runs on {settings.data.absolute()})"
        )
    return url


@asynccontextmanager
async def opened_store(configuration: Configuration) -> AsyncIterator[Store]:
    """The store, checked: a server that could lose messages, or has the data of a version that this one cannot work
    beside, is refused with what mends it.
    """
    settings = configuration.settings
    store = await Store.open(redis_url(settings), settings.shards)
    try:
        await sign_layout(store)
        await refuse_unsafe(store)
        await configure(store, settings.retention)
        yield store
    finally:
        await store.close()


async def refuse_unsafe(store: Store) -> None:
    """Raises SetupError for what could lose messages; warns of the rest."""
    complaints = await check(store)
    for complaint in complaints:
        log.warning("%s", complaint)
    fatal = [str(complaint) for complaint in complaints if complaint.fatal]
    if fatal:
        raise SetupError("this server could lose messages. " + " ".join(fatal))
