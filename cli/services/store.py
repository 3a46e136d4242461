"""Opens the store that a process works with, and refuses a server that could lose messages."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cli.processes.embedded_valkey import running_url
from cli.settings.settings import Configuration, Settings
from core.errors import SetupError, StoreUnavailable
from core.model.durability import Durability
from core.redis.server_checks import check, configure, register, sign_layout
from core.redis.store import Store

log = logging.getLogger(__name__)

RETRY_OPEN = 1.0
"""Seconds between two attempts to reach the server."""


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
        answers = settings.answers_retention or settings.retention
        await configure(store, settings.retention, settings.threads_retention, answers)
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
