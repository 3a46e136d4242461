"""Which versions of the library are on a server: the newest for programs in other languages, old ones to be removed.

A process that still runs an old version loads it again when it finds it missing (`core.redis.store`).
"""

import logging
import time
from datetime import timedelta

from core.errors import FunctionFault, StoreRefuses
from core.redis.keys import KEYS
from core.redis.store import Store

UNUSED = timedelta(days=30)
"""A version that no process has been started with for so long is removed."""

_PREFIX = "ada_"
_USED = KEYS["libraries"].at(0)
log = logging.getLogger(__name__)


async def register(store: Store) -> None:
    """Note that this version is used, and remove unused ones; called at every start. What the server refuses (it is
    full, a key has another type, a right is missing) is left to a later start.
    """
    now = time.time_ns() // 1_000_000
    try:
        await _note(store, now)
        await _remove_unused(store, now)
    except (StoreRefuses, FunctionFault) as fault:
        log.warning("the library %s is not noted as used: %s", store.library.name, fault)


async def _note(store: Store, now: int) -> None:
    await store.command("SET", KEYS["library"].at(0), store.library.name)
    for name in await _loaded(store):
        await store.command("ZADD", _USED, "NX", now, name)
    await store.command("ZADD", _USED, now, store.library.name)


async def _remove_unused(store: Store, now: int) -> None:
    for name in await store.command("ZRANGEBYSCORE", _USED, "-inf", now - UNUSED // timedelta(milliseconds=1)):
        await _remove(store, name)
        await store.command("ZREM", _USED, name)


async def _loaded(store: Store) -> list[str]:
    found = await store.command_everywhere("FUNCTION", "LIST", "LIBRARYNAME", f"{_PREFIX}*")
    return sorted({library["library_name"] for libraries in found.values() for library in libraries})


async def _remove(store: Store, name: str) -> None:
    try:
        await store.command_everywhere("FUNCTION", "DELETE", name)
    except FunctionFault as fault:
        if "Library not found" not in str(fault):
            raise
