"""What each process does at its start: logging, signal handlers, and opening the store."""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cli.processes.embedded_valkey import running_url
from cli.settings.settings import Configuration, Settings
from core.errors import SetupError
from core.redis.server_checks import check, configure, sign_layout
from core.redis.store import Store

log = logging.getLogger(__name__)


def configure_logging(settings: Settings) -> None:
    """Logs to stderr, one line per event. The supervisor adds the process name in front."""
    logging.basicConfig(
        stream=sys.stderr, level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    if settings.log_level != "debug":
        logging.getLogger("telethon").setLevel(logging.WARNING)  # at info it logs every connection


def stop_requested() -> asyncio.Event:
    """Returns an event that SIGTERM and SIGINT set. A second signal ends the process at once."""
    event, loop = asyncio.Event(), asyncio.get_running_loop()

    def request(number: int) -> None:
        loop.remove_signal_handler(number)
        event.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, request, number)
    return event


def redis_url(settings: Settings) -> str:
    """ADA_REDIS_URL, or the embedded server of a running `./ada up`. Raises SetupError."""
    url = settings.redis_url or running_url(settings.data / "valkey")
    if url is None:
        raise SetupError(
            f"no Redis server: set ADA_REDIS_URL, or start `./ada up` (none is running in {settings.data.absolute()})"
        )
    return url


@asynccontextmanager
async def open_store(configuration: Configuration) -> AsyncIterator[Store]:
    """Opens the store and checks the server.

    Raises SetupError, with the command that repairs it, if the server could lose messages or holds data of a version
    that this version cannot work beside.
    """
    settings = configuration.settings
    store = await Store.open(redis_url(settings), settings.shards)
    try:
        await sign_layout(store)
        await refuse_unsafe_server(store)
        await configure(store, settings.retention)
        yield store
    finally:
        await store.close()


async def refuse_unsafe_server(store: Store) -> None:
    """Raises SetupError for settings that could lose messages; logs a warning for the others."""
    problems = await check(store)
    for problem in problems:
        log.warning("%s", problem)
    fatal = [str(problem) for problem in problems if problem.fatal]
    if fatal:
        raise SetupError("this server could lose messages. " + " ".join(fatal))
