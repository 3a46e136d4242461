"""The start of each process: logging, signal handlers, and opening the store."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from cli.command import SUCCESS
from cli.processes.embedded_valkey import running_url
from cli.settings.settings import Configuration, Settings
from core.errors import SetupError, StoreUnavailable
from core.model.durability import Durability
from core.redis.libraries import register
from core.redis.server_checks import check, configure, sign_layout
from core.redis.store import Store

log = logging.getLogger(__name__)

RETRY_OPEN = 1.0
"""Seconds between two attempts to reach the server."""


FULL = "%(asctime)s %(levelname)s %(name)s: %(message)s"
"""The format with ADA_LOG_LEVEL=debug."""


class ShortFormat(logging.Formatter):
    """Time and message, and the level of what is not ordinary: people read these lines."""

    def __init__(self) -> None:
        super().__init__(datefmt="%Y-%m-%d %H:%M:%S")

    def usesTime(self) -> bool:  # noqa: N802 - the name is logging's
        return True

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        return f"{record.asctime} {level}{record.message}"


def configure_logging(settings: Settings) -> None:
    """Log to stderr, one line per event. The supervisor adds the process name in front."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FULL) if settings.log_level == "debug" else ShortFormat())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
    if settings.log_level != "debug":
        logging.getLogger("telethon").setLevel(logging.CRITICAL)  # it logs every connection; the courier reports faults


def stop_requested() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set. A second signal ends the process at once."""
    event, loop = asyncio.Event(), asyncio.get_running_loop()

    def request(number: int) -> None:
        loop.remove_signal_handler(number)
        event.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, request, number)
    return event


def collect_garbage_less_often() -> None:
    """Leave the modules out of every collection, and let more objects live between two.

    Requests and attempts leave hardly any cycles behind. With Python's defaults the collections took a third of a busy
    process's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def run_until(
    stop: asyncio.Event, work: Coroutine[Any, Any, int], on_stop: Callable[[], None] = lambda: None
) -> int:
    """Run the work; cancel it when a stop is requested, also during the start. `on_stop` is called before."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        stopping.cancel()
        return working.result()
    on_stop()
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working
    return SUCCESS


def redis_url(settings: Settings) -> str:
    """Return ADA_REDIS_URL, or that of the embedded server of a running `./ada up`. Raises SetupError."""
    url = settings.redis_url or running_url(settings.data / "valkey")
    if url is None:
        raise SetupError(
            f"no Redis server: set ADA_REDIS_URL, or start `./ada up` (none is running in {settings.data.absolute()})"
        )
    return url


@asynccontextmanager
async def open_store(configuration: Configuration, waits: bool = False) -> AsyncIterator[Store]:
    """Open the store and check the server. A server that cannot be reached is waited for, or StoreUnavailable raised.

    Raises SetupError, with the command that repairs it, if the server could lose messages or holds data of a version
    that this version cannot work beside.
    """
    settings = configuration.settings
    url = redis_url(settings)
    opening = open_when_reachable if waits else Store.open
    store = await opening(url, settings.shards, durability=settings.durability)
    try:
        await sign_layout(store)
        await register(store)
        await refuse_unsafe_server(store)
        await configure(store, settings.retention)
        yield store
    finally:
        await store.close()


async def open_when_reachable(url: str, shards: int, *, durability: Durability) -> Store:
    """Open the store as soon as the server can be reached; an outage is logged once. For processes that serve."""
    waited = False
    while True:
        try:
            store = await Store.open(url, shards, durability=durability)
        except StoreUnavailable as fault:
            if not waited:
                log.warning("%s Waiting for it.", fault)
            waited = True
            await asyncio.sleep(RETRY_OPEN)
        else:
            if waited:
                log.warning("Redis can be reached again")
            return store


async def refuse_unsafe_server(store: Store) -> None:
    """Check the settings of the server. Raises SetupError for settings that could lose messages; logs a warning for the
    others.
    """
    problems = await check(store)
    for problem in problems:
        log.warning("%s", problem)
    fatal = [str(problem) for problem in problems if problem.fatal]
    if fatal:
        raise SetupError("this server could lose messages. " + " ".join(fatal))
